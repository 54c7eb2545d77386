module compare

go 1.26.0

require (
	github.com/df-mc/dragonfly v0.10.13
	github.com/df-mc/goleveldb v1.1.9
)

require (
	github.com/brentp/intintmap v0.0.0-20251106190759-56907b1f8479 // indirect
	github.com/df-mc/worldupgrader v1.0.20 // indirect
	github.com/go-gl/mathgl v1.2.0 // indirect
	github.com/golang/snappy v0.0.4 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.18.4 // indirect
	github.com/sandertv/gophertunnel v1.56.2 // indirect
	github.com/segmentio/fasthash v1.0.3 // indirect
	golang.org/x/net v0.38.0 // indirect
	golang.org/x/text v0.23.0 // indirect
)
