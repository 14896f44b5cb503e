// Package ssrf keeps an HTTP client from being sent into the network in which it runs (server-side request forgery),
// for requests to URLs that users supply. It works with and without retries, and imports the standard library only.
//
// This package is of the stable core. Its names are meant for v1.
package ssrf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/retrygo/retry/retryhttp/internal/base"
)

// ErrBlocked is wrapped by every refusal of a Guard. errors.Is finds it in the error of http.Client too. No connection
// was made, and a retry cannot help.
var ErrBlocked = errors.New("ssrf: address is blocked")

// BlockedError is the refusal of an address by a Guard. Find it with errors.As.
type BlockedError struct {
	// Address is the refused IP address, with a port if it is from Control. Do not show it to the user who gave the URL,
	// because a name inside the network can resolve to it. It is never empty.
	Address string
	// Rule is the word for the reason, such as "loopback", "private", "link-local" or "cloud-metadata". It is "zone"
	// for an IPv6 address with a zone, "not-tcp" for another network, and "not-an-ip" for anything but an IP address
	// with a port. It is never empty.
	Rule string
}

// Error returns `ssrf: address is blocked: loopback "127.0.0.1:80"`.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("%v: %s %q", ErrBlocked, e.Rule, e.Address)
}

// Unwrap returns ErrBlocked.
func (e *BlockedError) Unwrap() error { return ErrBlocked }

// Guard keeps requests to user-supplied URLs out of the network in which the program runs (server-side request
// forgery). It refuses every address that the IANA special-purpose registries do not call globally reachable, and the
// cloud metadata service that has a public address. It looks at the address of each connection, after the name is
// resolved, so a name that resolves differently the second time (DNS rebinding) does not get through, and each hop of a
// redirect is judged by itself. The zero value works and has no exceptions. A Guard is safe for concurrent use.
//
// A Guard does not limit ports, schemes or paths. Whether redirects are followed is the client's choice. It knows
// neither the public addresses of your own network nor its own NAT64 prefix. If a name has several addresses, it
// refuses the blocked ones, and the others are still tried. A proxy defeats it, because the proxy resolves the name and
// connects. So does Plan 9, where package net does not call Control.
type Guard struct {
	// Allow lists the exceptions. They win over every refusal of an IP address, also of one with a zone. An IPv4-mapped
	// IPv6 address is judged as IPv4, here and in the prefixes. The other forms that carry an IPv4 address are not, so
	// allow them by their IPv6 prefix. A zero Prefix matches no address. Empty means no exceptions.
	Allow []netip.Prefix
}

// Transport returns a transport like the one of retryhttp.NewBase, guarded and without proxy. You may set its fields
// before its first use, but neither Proxy nor the dial functions. A DialContext of your own needs a net.Dialer with the
// guard's Control.
//
// If a name has addresses that are blocked and addresses that are not, and none of the latter can be reached, the error
// does not match ErrBlocked, because another attempt may succeed.
func (g Guard) Transport() *http.Transport {
	g.Allow = slices.Clone(g.Allow) // the caller may reuse the slice
	t := base.New()
	// With a proxy the guard sees the proxy's address only, so that HTTP_PROXY in the environment would switch it off.
	t.Proxy = nil
	t.DialContext = g.dial
	return t
}

// dial connects to an address that the guard passes.
func (g Guard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var passed atomic.Bool // whether an address was, since the dialer tries IPv4 and IPv6 at the same time
	dialer := base.Dialer()
	dialer.Control = func(network, address string, c syscall.RawConn) error {
		err := g.Control(network, address, c)
		if err == nil {
			passed.Store(true)
		}
		return err
	}
	conn, err := dialer.DialContext(ctx, network, addr)
	if errors.Is(err, ErrBlocked) && passed.Load() {
		// Of several errors the dialer returns the first.
		err = &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("%v (no other address can be reached)", err)}
	}
	return conn, err
}

// Control returns nil if the connection may be made, otherwise a *BlockedError. It is meant for the Control field of a
// net.Dialer, which calls it for each address after resolution and before the connection. A ControlContext in the same
// dialer switches it off. Control does not touch the connection. It refuses all networks but TCP, because HTTP needs no
// other, and a unix socket has no address to judge.
func (g Guard) Control(network, address string, _ syscall.RawConn) error {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return &BlockedError{Address: address, Rule: "not-tcp"}
	}
	addrPort, err := netip.ParseAddrPort(address)
	if err != nil {
		// ":80" comes here too, because an empty host is the local one to package net.
		return &BlockedError{Address: address, Rule: "not-an-ip"}
	}
	if rule := g.refusal(addrPort.Addr()); rule != "" {
		return &BlockedError{Address: address, Rule: rule}
	}
	return nil
}

// Check returns nil if addr may be connected to, otherwise a *BlockedError. The zero Addr is refused. Use it to reject
// a literal address early. It does not protect a name, whose next resolution may have other addresses.
func (g Guard) Check(addr netip.Addr) error {
	if rule := g.refusal(addr); rule != "" {
		return &BlockedError{Address: addr.String(), Rule: rule}
	}
	return nil
}

// refusal returns the rule that refuses addr, or "".
func (g Guard) refusal(addr netip.Addr) string {
	if !addr.IsValid() {
		return "not-an-ip"
	}
	// Prefixes carry no zone and match no address that has one.
	plain := addr.WithZone("").Unmap()
	for _, prefix := range g.Allow {
		if unmapPrefix(prefix).Contains(plain) {
			return ""
		}
	}
	if rule := addressRefusal(plain); rule != "" {
		return rule
	}
	if addr.Zone() != "" {
		// A public address needs no zone. If it has one, the zone picks the interface.
		return "zone"
	}
	return ""
}

// unmapPrefix returns ::ffff:10.1.0.0/112 as 10.1.0.0/16, and every other prefix as it is.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// addressRefusal returns the rule that refuses addr, which has no zone and is not IPv4-mapped, or "".
func addressRefusal(addr netip.Addr) string {
	for _, rule := range addressRules {
		if rule.prefix.Contains(addr) {
			return rule.name
		}
	}
	if addr.Is4() {
		return ""
	}
	b := addr.As16()
	if sixToFour.Contains(addr) {
		if rule := addressRefusal(netip.AddrFrom4([4]byte(b[2:6]))); rule != "" {
			return rule
		}
	}
	switch {
	case nat64.Contains(addr):
		return addressRefusal(netip.AddrFrom4([4]byte(b[12:16])))
	case !globalUnicast.Contains(addr):
		return "reserved"
	case b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe:
		// ISATAP, RFC 5214 section 6.1. An address ::0:5efe:a.b.c.d or ::200:5efe:a.b.c.d under any prefix of a site
		// tunnels to a.b.c.d within it.
		return addressRefusal(netip.AddrFrom4([4]byte(b[12:16])))
	}
	return ""
}

var (
	// The last four bytes are the IPv4 address (RFC 6052 section 2.1). The prefix is not refused as a whole, because
	// under DNS64 every IPv4-only server has such an address.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	// Bytes 2 to 5 are the IPv4 address (RFC 3056 section 2).
	sixToFour = netip.MustParsePrefix("2002::/16")
	// Unicast assignments are limited to 2000::/3 (IANA IPv6 address space registry, note 3).
	globalUnicast = netip.MustParsePrefix("2000::/3")
)

// addressRules are the refused ranges. The first that contains an address names the reason. They are the entries of the
// IANA IPv4 and IPv6 special-purpose address registries whose "Globally Reachable" is not true, multicast, and the
// Azure platform address. 6to4 is judged by the IPv4 address that it carries. The globally reachable addresses within
// 192.0.0.0/24 and 2001::/23 are refused with the rest. They belong to anycast relays (PCP, TURN, AMT, AS112) and
// identifiers (ORCHIDv2, DRIP), and no web server has one. The IPv6 entries outside globalUnicast give a better name
// than "reserved".
var addressRules = []struct {
	prefix netip.Prefix
	name   string
}{
	{netip.MustParsePrefix("0.0.0.0/32"), "unspecified"},           // RFC 1122 section 3.2.1.3, on Linux the host itself
	{netip.MustParsePrefix("0.0.0.0/8"), "this-network"},           // RFC 791 section 3.2
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},               // RFC 1918 section 3
	{netip.MustParsePrefix("100.64.0.0/10"), "shared"},             // RFC 6598 section 7, has Alibaba metadata 100.100.100.200
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},             // RFC 1122 section 3.2.1.3
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud-metadata"},  // Azure docs, "What is IP address 168.63.129.16?"
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},        // RFC 3927 section 2.1, has metadata 169.254.169.254
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},            // RFC 1918 section 3
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol-assignment"}, // RFC 6890 section 2.1
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},       // RFC 5737 section 3
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4-relay"},        // RFC 7526, deprecated, and 6a44 in it, RFC 6751
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},           // RFC 1918 section 3
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},       // RFC 2544
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},    // RFC 5737 section 3
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},     // RFC 5737 section 3
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},            // RFC 5771
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},     // RFC 919 section 7
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},             // RFC 1112 section 4
	{netip.MustParsePrefix("::/128"), "unspecified"},               // RFC 4291 section 2.5.2
	{netip.MustParsePrefix("::1/128"), "loopback"},                 // RFC 4291 section 2.5.3
	{netip.MustParsePrefix("::/96"), "ipv4-compatible"},            // RFC 4291 section 2.5.5.1, whatever it carries
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "ipv4-translated"},  // RFC 2765, obsolete, whatever it carries
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local-nat64"},       // RFC 8215, leads into the local network
	{netip.MustParsePrefix("100::/64"), "discard"},                 // RFC 6666
	{netip.MustParsePrefix("100:0:0:1::/64"), "dummy"},             // RFC 9780
	{netip.MustParsePrefix("2001::/32"), "teredo"},                 // RFC 4380 section 2.6, carries a server and a client
	{netip.MustParsePrefix("2001:2::/48"), "benchmarking"},         // RFC 5180
	{netip.MustParsePrefix("2001::/23"), "protocol-assignment"},    // RFC 2928
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},      // RFC 3849
	{netip.MustParsePrefix("3fff::/20"), "documentation"},          // RFC 9637
	{netip.MustParsePrefix("5f00::/16"), "segment-routing"},        // RFC 9602
	{netip.MustParsePrefix("fc00::/7"), "private"},                 // RFC 4193 section 3.1, has AWS metadata fd00:ec2::254
	{netip.MustParsePrefix("fe80::/10"), "link-local"},             // RFC 4291 section 2.5.6
	{netip.MustParsePrefix("fec0::/10"), "site-local"},             // RFC 3879 section 4, deprecated
	{netip.MustParsePrefix("ff00::/8"), "multicast"},               // RFC 4291 section 2.7
}
