package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob/jobsui"
)

func (a *app) serveCommand() *cobra.Command {
	var addr string
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a page, to this machine alone, to look at jobs and change them",
		Long: `serve prints the address of a local page for the jobs of the database, and ends when it is interrupted.

The address has a token, without which no request is answered: the page gives it to a browser as a cookie. Whoever
has the address can change jobs, or look at them with --read-only. To reach the page from elsewhere, mount package
retryjob/jobsui in a service with a login.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listen, err := listenAddress(addr)
			if err != nil {
				return err
			}
			return a.work(cmd, a.Now(), func(ctx context.Context, s *session) error { return s.serve(ctx, listen, readOnly) })
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "loopback `address` to listen on; port 0 is any that is free")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "offer and accept no change of jobs")
	return cmd
}

// listenAddress returns the address to listen on, which no other machine can reach.
func listenAddress(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("--addr %q is not host:port", addr)
	}
	if host == "localhost" {
		host = "127.0.0.1" // no resolver is asked
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return "", fmt.Errorf("--addr %q is not a loopback address, and the page has no login", addr)
	}
	return net.JoinHostPort(host, port), nil
}

// serve serves the page until ctx ends.
func (s *session) serve(ctx context.Context, addr string, readOnly bool) error {
	access := jobsui.ReadWrite
	if readOnly {
		access = jobsui.ReadOnly
	}
	page, err := jobsui.New(jobsui.Options{
		Admin: s.store, Name: printable(label(s.chosen)), ErrorText: s.text, Access: func(*http.Request) jobsui.Access { return access },
	})
	if err != nil {
		return err
	}
	token := rand.Text()
	path, page := locked(token, page)
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler:           page,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		cancel() // completed requests stay in effect
		patience, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		if server.Shutdown(patience) != nil {
			_ = server.Close()
		}
	})
	fmt.Fprintf(s.out, "http://%v%s?token=%s\n", listener.Addr(), path, token)
	if s.out.Flush() != nil { // at once, since the command continues; it fails again at the end
		return listener.Close()
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped // requests use the store
	return nil
}
