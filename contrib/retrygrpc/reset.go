package retrygrpc

import (
	"reflect"

	"google.golang.org/protobuf/proto"
)

// reset makes a message what it was before an attempt filled it, so that a reply never has parts of two.
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
