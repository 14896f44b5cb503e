package pgtest_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
)

func TestServer(t *testing.T) {
	var addr string
	t.Run("a server accepts connections while it is up", func(t *testing.T) {
		s := pgtest.Start(t)
		addr = s.Addr()
		require.Equal(t, "postgres://postgres@"+addr+"/postgres?sslmode=disable", s.DSN())
		dial(t, addr)
		s.Restart(t)
		dial(t, addr)
		s.Kill(t)
		s.Kill(t)
		refused(t, addr)
		s.Up(t)
		s.Up(t)
		dial(t, addr)
	})
	t.Run("a server ends with its test", func(t *testing.T) {
		if addr == "" {
			t.Skip("there was none")
		}
		refused(t, addr)
	})
}

func dial(t *testing.T, addr string) {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

func refused(t *testing.T, addr string) {
	_, err := net.Dial("tcp", addr)
	require.Error(t, err)
}
