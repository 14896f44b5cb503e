package retrygrpc

import (
	"reflect"

	"google.golang.org/protobuf/proto"
)

// reset restores a message to its state before an attempt filled it, so a reply never combines two attempts.
func reset(message any) {
	switch m := message.(type) {
	case proto.Message:
		proto.Reset(m)
	case interface{ Reset() }:
		m.Reset()
	default: // of another codec
		if p := reflect.ValueOf(message); p.Kind() == reflect.Pointer && !p.IsNil() {
			p.Elem().SetZero()
		}
	}
}
