package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-gl/mathgl/mgl32"
	"github.com/google/uuid"
	"github.com/sandertv/gophertunnel/minecraft"
	"github.com/sandertv/gophertunnel/minecraft/protocol"
	"github.com/sandertv/gophertunnel/minecraft/protocol/login"
	"github.com/sandertv/gophertunnel/minecraft/protocol/packet"
)

// builderID is the player that builds in all runs.
const builderID = "8a2f0b0e-5e2d-4c55-9a7e-0a8d3f5f6c11"

// play joins a server, walks and builds until the connection ends. It prints
// "joined" once it is in the world.
func play(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := minecraft.Dialer{
		IdentityData: login.IdentityData{DisplayName: "Builder", Identity: uuid.MustParse(builderID).String()},
	}.DialContext(ctx, "raknet", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.DoSpawnContext(ctx); err != nil {
		return err
	}
	fmt.Println("joined")
	go func() {
		for {
			if _, err := conn.ReadPacket(); err != nil {
				return
			}
		}
	}()
	at := mgl32.Vec3{0.5, ground + 1.62, 0.5}
	heading := mgl32.Vec3{1, 0, 0}
	for tick := uint64(1); ; tick++ {
		if next := at.Add(heading.Mul(0.4)); abs(next[0]) < reach-5 && abs(next[2]) < reach-5 {
			at = next
		}
		if rand.IntN(12) == 0 {
			heading = [4]mgl32.Vec3{{1, 0, 0}, {-1, 0, 0}, {0, 0, 1}, {0, 0, -1}}[rand.IntN(4)]
		}
		err := conn.WritePacket(&packet.PlayerAuthInput{Position: at, InputData: protocol.NewInputFlags(packet.InputFlagCount), Tick: tick})
		if err != nil {
			return err
		}
		if tick%2 == 0 {
			if err := build(conn, at); err != nil {
				return err
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// build puts a block onto the ground near the player.
func build(conn *minecraft.Conn, at mgl32.Vec3) error {
	x, z := int32(at[0])+rand.Int32N(9)-4, int32(at[2])+rand.Int32N(9)-4
	return conn.WritePacket(&packet.InventoryTransaction{TransactionData: &protocol.UseItemTransactionData{
		ActionType: protocol.UseItemActionClickBlock, BlockPosition: protocol.BlockPos{x, ground - 1, z}, BlockFace: 1,
		Position: at, ClickedPosition: mgl32.Vec3{0.5, 1, 0.5},
	}})
}

func abs(f float32) float32 { return max(f, -f) }
