package retrygrpc_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/emptypb" // which the file below imports

	"github.com/retrygo/retry/contrib/retrygrpc"
)

func TestDeclaredIdempotent(t *testing.T) {
	method := func(name string, level *descriptorpb.MethodOptions_IdempotencyLevel) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: proto.String(".google.protobuf.Empty"), OutputType: proto.String(".google.protobuf.Empty"),
			Options: &descriptorpb.MethodOptions{IdempotencyLevel: level},
		}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("retrygrpc_test.proto"), Package: proto.String("retrygrpc.test"), Syntax: proto.String("proto3"),
		Dependency: []string{"google/protobuf/empty.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Shop"), Method: []*descriptorpb.MethodDescriptorProto{
			method("List", descriptorpb.MethodOptions_NO_SIDE_EFFECTS.Enum()),
			method("Put", descriptorpb.MethodOptions_IDEMPOTENT.Enum()),
			method("Buy", descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN.Enum()),
			method("Ask", nil),
		}}},
	}, protoregistry.GlobalFiles)
	require.NoError(t, err)
	if _, err := protoregistry.GlobalFiles.FindFileByPath(file.Path()); err != nil { // not with -count=2
		require.NoError(t, protoregistry.GlobalFiles.RegisterFile(file))
	}
	for name, want := range map[string]bool{
		"/retrygrpc.test.Shop/List": true, "/retrygrpc.test.Shop/Put": true, "/retrygrpc.test.Shop/Buy": false,
		"/retrygrpc.test.Shop/Ask": false, "/retrygrpc.test.Shop/None": false, "/retrygrpc.test.Shop": false, "": false, "/": false,
	} {
		require.Equal(t, want, retrygrpc.DeclaredIdempotent(name), name)
	}
}
