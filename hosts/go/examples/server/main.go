// Command server is a dragonfly server whose worlds and players are stored in
// CherryGrove.
//
//	server [-world DIR] [-listen ADDRESS] [-auth=false]
package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/cherrygrove/hosts/go/dragonfly"
	"github.com/df-mc/dragonfly/server"
	"github.com/df-mc/dragonfly/server/block/cube"
	"github.com/df-mc/dragonfly/server/player/chat"
)

func main() {
	dir := flag.String("world", "world", "the `directory` of the world; it is created if it is missing")
	listen := flag.String("listen", ":19132", "the `address` to listen on")
	auth := flag.Bool("auth", true, "whether players must be logged in to Xbox Live")
	flag.Parse()
	if err := run(*dir, *listen, *auth); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

func run(dir, listen string, auth bool) error {
	// The store is for the worlds and the players; the server closes it.
	store, err := dragonfly.Open(dir, dragonfly.Config{
		Spawn:     cube.Pos{0, -60, 0}, // on the ground of dragonfly's flat world
		OnTrouble: func(err error) { slog.Warn("operators should know: " + err.Error()) },
	})
	if err != nil {
		return err
	}
	user := server.DefaultConfig()
	user.Network.Address, user.Server.AuthEnabled = listen, auth
	user.World.SaveData, user.Players.SaveData = false, false // which means: not by dragonfly itself
	user.Resources.Folder = dir + "-resources"
	conf, err := user.Config(slog.Default())
	if err != nil {
		_ = store.Close()
		return err
	}
	conf.WorldProvider, conf.PlayerProvider = store, store.Players()

	// New would log that it cannot listen, and Listen would panic then.
	var listenErr error
	for i, listener := range conf.Listeners {
		conf.Listeners[i] = func(conf server.Config) (server.Listener, error) {
			l, err := listener(conf)
			listenErr = errors.Join(listenErr, err)
			return l, err
		}
	}
	chat.Global.Subscribe(chat.StdoutSubscriber{})
	srv := conf.New()
	if listenErr != nil {
		return errors.Join(fmt.Errorf("%w; where Xbox Live cannot be reached, -auth=false lets players join", listenErr), store.Close())
	}
	srv.CloseOnProgramEnd()
	srv.Listen()
	for p := range srv.Accept() {
		p.Message("This world is stored in CherryGrove.")
	}
	return nil
}
