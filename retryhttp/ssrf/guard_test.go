package ssrf_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
)

// blockedRanges is the second list of the refused ranges. Every address between them is allowed, unless it carries one that
// is refused.
var blockedRanges = []struct{ first, last, rule string }{
	{"0.0.0.0", "0.0.0.0", "unspecified"},
	{"0.0.0.1", "0.255.255.255", "this-network"},
	{"10.0.0.0", "10.255.255.255", "private"},
	{"100.64.0.0", "100.127.255.255", "shared"},
	{"127.0.0.0", "127.255.255.255", "loopback"},
	{"168.63.129.16", "168.63.129.16", "cloud-metadata"},
	{"169.254.0.0", "169.254.255.255", "link-local"},
	{"172.16.0.0", "172.31.255.255", "private"},
	{"192.0.0.0", "192.0.0.255", "protocol-assignment"},
	{"192.0.2.0", "192.0.2.255", "documentation"},
	{"192.88.99.0", "192.88.99.255", "6to4-relay"},
	{"192.168.0.0", "192.168.255.255", "private"},
	{"198.18.0.0", "198.19.255.255", "benchmarking"},
	{"198.51.100.0", "198.51.100.255", "documentation"},
	{"203.0.113.0", "203.0.113.255", "documentation"},
	{"224.0.0.0", "239.255.255.255", "multicast"},
	{"240.0.0.0", "255.255.255.254", "reserved"},
	{"255.255.255.255", "255.255.255.255", "broadcast"},

	{"::", "::", "unspecified"},
	{"::1", "::1", "loopback"},
	{"::2", "::ffff:ffff", "ipv4-compatible"},
	{"::1:0:0", "::fffe:ffff:ffff", "reserved"},
	{"::1:0:0:0", "::fffe:ffff:ffff:ffff", "reserved"},
	{"::ffff:0:0:0", "::ffff:0:ffff:ffff", "ipv4-translated"},
	{"::ffff:1:0:0", "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"},
	{"64:ff9b::1:0:0", "64:ff9b:0:ffff:ffff:ffff:ffff:ffff", "reserved"},
	{"64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "local-nat64"},
	{"64:ff9b:2::", "ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"},
	{"100::", "100::ffff:ffff:ffff:ffff", "discard"},
	{"100:0:0:1::", "100::1:ffff:ffff:ffff:ffff", "dummy"},
	{"100:0:0:2::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"},
	{"2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "teredo"},
	{"2001:1::", "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "protocol-assignment"},
	{"2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "benchmarking"},
	{"2001:2:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "protocol-assignment"},
	{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation"},
	{"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "documentation"},
	{"4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"},
	{"5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "segment-routing"},
	{"5f01::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"},
	{"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private"},
	{"fe00::", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"},
	{"fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local"},
	{"fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "site-local"},
	{"ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"},
}

func TestGuardRefusesEachRangeFromItsFirstToItsLastAddress(t *testing.T) {
	for _, row := range blockedRanges {
		t.Run(row.first+" to "+row.last, func(t *testing.T) {
			first, last := netip.MustParseAddr(row.first), netip.MustParseAddr(row.last)
			require.Equal(t, row.rule, ruleOf(t, first))
			require.Equal(t, row.rule, ruleOf(t, last))
			for _, neighbor := range []netip.Addr{first.Prev(), last.Next()} {
				if neighbor.IsValid() { // 0.0.0.0 has none before it
					require.NotEqual(t, row.rule, ruleOf(t, neighbor), neighbor)
					require.Equal(t, slowRule(neighbor), ruleOf(t, neighbor), neighbor)
				}
			}
		})
	}
}

// ruleOf returns the rule by which the zero Guard refuses addr, "" if it does not.
func ruleOf(t testing.TB, addr netip.Addr) string {
	err := ssrf.Guard{}.Check(addr)
	if err == nil {
		return ""
	}
	var blocked *ssrf.BlockedError
	require.ErrorAs(t, err, &blocked)
	require.Equal(t, addr.String(), blocked.Address)
	return blocked.Rule
}

func TestGuardKnowsTheAddressesThatMatter(t *testing.T) {
	for _, row := range []struct{ name, addr, rule string }{
		{name: "public IPv4 is allowed", addr: "8.8.8.8"},
		{name: "public IPv6 is allowed", addr: "2606:4700:4700::1111"},
		{name: "AS112 is globally reachable by the registry", addr: "192.31.196.1"},
		{name: "direct delegation AS112 is too", addr: "192.175.48.1"},
		{name: "AMT is too", addr: "192.52.193.1"},
		{name: "direct delegation AS112 of IPv6 is too", addr: "2620:4f:8000::1"},
		{name: "AWS, GCP, Azure, DigitalOcean, Oracle metadata", addr: "169.254.169.254", rule: "link-local"},
		{name: "AWS ECS credentials", addr: "169.254.170.2", rule: "link-local"},
		{name: "AWS metadata by IPv6", addr: "fd00:ec2::254", rule: "private"},
		{name: "GCP metadata by IPv6", addr: "fd20:ce::254", rule: "private"},
		{name: "OpenStack metadata by IPv6", addr: "fe80::a9fe:a9fe", rule: "link-local"},
		{name: "Alibaba metadata", addr: "100.100.100.200", rule: "shared"},
		{name: "Oracle Cloud classic metadata", addr: "192.0.0.192", rule: "protocol-assignment"},
		{name: "Azure platform address", addr: "168.63.129.16", rule: "cloud-metadata"},
		{name: "mapped loopback", addr: "::ffff:127.0.0.1", rule: "loopback"},
		{name: "mapped metadata", addr: "::ffff:a9fe:a9fe", rule: "link-local"},
		{name: "mapped public IPv4 is allowed", addr: "::ffff:8.8.8.8"},
		{name: "compatible loopback", addr: "::127.0.0.1", rule: "ipv4-compatible"},
		{name: "compatible public IPv4 cannot be reached", addr: "::8.8.8.8", rule: "ipv4-compatible"},
		{name: "translated loopback", addr: "::ffff:0:127.0.0.1", rule: "ipv4-translated"},
		{name: "NAT64 to a private address", addr: "64:ff9b::10.0.0.1", rule: "private"},
		{name: "NAT64 to metadata", addr: "64:ff9b::169.254.169.254", rule: "link-local"},
		{name: "NAT64 to the Azure platform address", addr: "64:ff9b::168.63.129.16", rule: "cloud-metadata"},
		{name: "NAT64 to a public address is allowed", addr: "64:ff9b::8.8.8.8"},
		{name: "local NAT64 to a public address", addr: "64:ff9b:1::8.8.8.8", rule: "local-nat64"},
		{name: "6to4 of a private address", addr: "2002:a00:1::1", rule: "private"},
		{name: "6to4 of loopback", addr: "2002:7f00:1::", rule: "loopback"},
		{name: "6to4 of a public address is allowed", addr: "2002:808:808::1"},
		{name: "Teredo", addr: "2001:0:4136:e378:8000:63bf:3fff:fdd2", rule: "teredo"},
		{name: "ISATAP to a private address", addr: "2606:4700::5efe:10.0.0.1", rule: "private"},
		{name: "ISATAP with the universal bit to a private address", addr: "2606:4700::200:5efe:10.0.0.1", rule: "private"},
		{name: "ISATAP under 6to4 to a link-local address", addr: "2002:808:808::5efe:a9fe:a9fe", rule: "link-local"},
		{name: "ISATAP under 6to4 to a public address is allowed", addr: "2002:808:808::5efe:808:808"},
		{name: "ISATAP to a public address is allowed", addr: "2606:4700::5efe:8.8.8.8"},
		{name: "an interface identifier that is not quite that of ISATAP, in its first group, is allowed", addr: "2606:4700::1:5efe:10.0.0.1"},
		{name: "an interface identifier that is not quite that of ISATAP, in its second group, is allowed", addr: "2606:4700::fe:10.0.0.1"},
		{name: "link-local with a zone", addr: "fe80::1%eth0", rule: "link-local"},
		{name: "public with a zone", addr: "2606:4700:4700::1111%eth0", rule: "zone"},
		{name: "PCP anycast among the protocol assignments", addr: "2001:1::1", rule: "protocol-assignment"},
		{name: "ORCHIDv2 among the protocol assignments", addr: "2001:20::1", rule: "protocol-assignment"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.rule, ruleOf(t, netip.MustParseAddr(row.addr)))
		})
	}
}

func TestGuardRefusesTheZeroAddr(t *testing.T) {
	everything := ssrf.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"), {}}}
	require.Equal(t, "not-an-ip", ruleOf(t, netip.Addr{}))
	require.ErrorIs(t, everything.Check(netip.Addr{}), ssrf.ErrBlocked)
}

func TestGuardAllowWinsOverTheRefusals(t *testing.T) {
	for _, row := range []struct {
		name  string
		allow netip.Prefix
		addr  string
		want  bool
	}{
		{name: "first of the prefix", allow: netip.MustParsePrefix("10.1.0.0/16"), addr: "10.1.0.0", want: true},
		{name: "last of the prefix", allow: netip.MustParsePrefix("10.1.0.0/16"), addr: "10.1.255.255", want: true},
		{name: "neighbor before stays refused", allow: netip.MustParsePrefix("10.1.0.0/16"), addr: "10.0.255.255"},
		{name: "neighbor after stays refused", allow: netip.MustParsePrefix("10.1.0.0/16"), addr: "10.2.0.0"},
		{name: "public stays allowed", allow: netip.MustParsePrefix("10.1.0.0/16"), addr: "8.8.8.8", want: true},
		{name: "prefix with host bits", allow: netip.MustParsePrefix("10.1.2.3/16"), addr: "10.1.9.9", want: true},
		{name: "mapped address by the IPv4 prefix", allow: netip.MustParsePrefix("10.1.0.0/16"), addr: "::ffff:10.1.2.3", want: true},
		{name: "address by the mapped prefix", allow: mappedPrefix("10.1.0.0", 112), addr: "10.1.2.3", want: true},
		{name: "mapped address by the mapped prefix", allow: mappedPrefix("10.1.0.0", 112), addr: "::ffff:10.1.2.3", want: true},
		{name: "mapped prefix allows no more than its length", allow: mappedPrefix("10.1.0.0", 112), addr: "10.2.0.0"},
		{name: "all mapped addresses are all of IPv4", allow: mappedPrefix("0.0.0.0", 96), addr: "127.0.0.1", want: true},
		{name: "a prefix wider than the mapped range is IPv6", allow: mappedPrefix("0.0.0.0", 95), addr: "127.0.0.1"},
		{name: "a prefix wider than the mapped range matches what is IPv6", allow: mappedPrefix("0.0.0.0", 95), addr: "::fffe:0:1", want: true},
		{name: "all of IPv6 is not IPv4", allow: netip.MustParsePrefix("::/0"), addr: "127.0.0.1"},
		{name: "all of IPv6 is not mapped IPv4", allow: netip.MustParsePrefix("::/0"), addr: "::ffff:127.0.0.1"},
		{name: "all of IPv4 is not IPv6", allow: netip.MustParsePrefix("0.0.0.0/0"), addr: "::1"},
		{name: "carried by NAT64 is not the address", allow: netip.MustParsePrefix("10.1.0.0/16"), addr: "64:ff9b::10.1.0.1"},
		{name: "NAT64 by its own prefix", allow: netip.MustParsePrefix("64:ff9b::10.1.0.0/112"), addr: "64:ff9b::10.1.0.1", want: true},
		{name: "link-local with the zone it needs", allow: netip.MustParsePrefix("fe80::/10"), addr: "fe80::1%eth0", want: true},
		{name: "zero prefix matches nothing", allow: netip.Prefix{}, addr: "127.0.0.1"},
		{name: "zero prefix matches no IPv6", allow: netip.Prefix{}, addr: "::"},
		{name: "prefix with impossible bits matches nothing", allow: netip.PrefixFrom(netip.MustParseAddr("127.0.0.1"), 33), addr: "127.0.0.1"},
		{name: "mapped prefix with impossible bits matches nothing", allow: netip.PrefixFrom(netip.MustParseAddr("::ffff:127.0.0.1"), 129), addr: "127.0.0.1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, allow := range [][]netip.Prefix{{row.allow}, {{}, netip.MustParsePrefix("192.0.2.0/32"), row.allow}} {
				err := ssrf.Guard{Allow: allow}.Check(netip.MustParseAddr(row.addr))
				require.Equal(t, row.want, err == nil, "%v", err)
			}
		})
	}
}

// mappedPrefix returns ::ffff:v4/bits, which netip.ParsePrefix does not accept.
func mappedPrefix(v4 string, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.MustParseAddr("::ffff:"+v4), bits)
}

func TestGuardControlRefusesWhatIsNoAddressOfTCP(t *testing.T) {
	guard := ssrf.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	for _, row := range []struct{ network, address, rule string }{
		{network: "tcp4", address: "127.0.0.1:80"},
		{network: "tcp6", address: "[::1]:80"},
		{network: "tcp", address: "[fe80::1%eth0]:80"},
		{network: "unix", address: "/var/run/docker.sock", rule: "not-tcp"},
		{network: "unix", address: "127.0.0.1:80", rule: "not-tcp"},
		{network: "udp4", address: "8.8.8.8:53", rule: "not-tcp"},
		{network: "ip4:icmp", address: "8.8.8.8", rule: "not-tcp"},
		{network: "TCP", address: "8.8.8.8:80", rule: "not-tcp"},
		{network: "tcp5", address: "8.8.8.8:80", rule: "not-tcp"},
		{network: "", address: "8.8.8.8:80", rule: "not-tcp"},
		{network: "tcp", address: "", rule: "not-an-ip"},
		{network: "tcp", address: ":80", rule: "not-an-ip"},
		{network: "tcp", address: "8.8.8.8", rule: "not-an-ip"},
		{network: "tcp", address: "8.8.8.8:", rule: "not-an-ip"},
		{network: "tcp", address: "8.8.8.8:http", rule: "not-an-ip"},
		{network: "tcp", address: "8.8.8.8:65536", rule: "not-an-ip"},
		{network: "tcp", address: "8.8.8.8:-1", rule: "not-an-ip"},
		{network: "tcp", address: "localhost:80", rule: "not-an-ip"},
		{network: "tcp", address: "2130706433:80", rule: "not-an-ip"},
		{network: "tcp", address: "0x7f.1:80", rule: "not-an-ip"},
		{network: "tcp", address: "127.1:80", rule: "not-an-ip"},
		{network: "tcp", address: "0177.0.0.1:80", rule: "not-an-ip"},
		{network: "tcp", address: "08.8.8.8:80", rule: "not-an-ip"},
		{network: "tcp", address: " 8.8.8.8:80", rule: "not-an-ip"},
		{network: "tcp", address: "8.8.8.8:80\n", rule: "not-an-ip"},
		{network: "tcp", address: "8.8.8.8\x00:80", rule: "not-an-ip"},
		{network: "tcp", address: "::1:80", rule: "not-an-ip"},
		{network: "tcp", address: "[8.8.8.8]:80", rule: "not-an-ip"},
		{network: "tcp", address: "[::1%]:80", rule: "not-an-ip"},
		{network: "tcp", address: "user@8.8.8.8:80", rule: "not-an-ip"},
	} {
		t.Run(fmt.Sprintf("%s %q", row.network, row.address), func(t *testing.T) {
			err := guard.Control(row.network, row.address, nil)
			if row.rule == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, &ssrf.BlockedError{Address: row.address, Rule: row.rule}, err)
		})
	}
}

func TestBlockedErrorIsOneLineAndFound(t *testing.T) {
	err := ssrf.Guard{}.Control("tcp4", "127.0.0.1:80", nil)
	require.EqualError(t, err, `ssrf: address is blocked: loopback "127.0.0.1:80"`)
	require.ErrorIs(t, err, ssrf.ErrBlocked)

	err = ssrf.Guard{}.Control("tcp", "10.0.0.1\r\nX: y", nil)
	require.EqualError(t, err, `ssrf: address is blocked: not-an-ip "10.0.0.1\r\nX: y"`)

	err = ssrf.Guard{}.Check(netip.MustParseAddr("fe80::1%\n"))
	require.EqualError(t, err, `ssrf: address is blocked: link-local "fe80::1%\n"`)
}

func TestGuardTransportHasTheDefaultsAndNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:8080")
	want := http.DefaultTransport.(*http.Transport)
	got := ssrf.Guard{}.Transport()
	require.Nil(t, got.Proxy)
	require.Nil(t, got.DialTLSContext)
	require.NotNil(t, got.DialContext)
	require.Equal(t, want.ForceAttemptHTTP2, got.ForceAttemptHTTP2)
	require.Equal(t, want.MaxIdleConns, got.MaxIdleConns)
	require.Equal(t, want.IdleConnTimeout, got.IdleConnTimeout)
	require.Equal(t, want.TLSHandshakeTimeout, got.TLSHandshakeTimeout)
	require.Equal(t, want.ExpectContinueTimeout, got.ExpectContinueTimeout)
	require.Equal(t, retryhttp.NewBase().HTTP2, got.HTTP2)
	require.Equal(t, retryhttp.NewBase().MaxResponseHeaderBytes, got.MaxResponseHeaderBytes)
	require.NotSame(t, got, ssrf.Guard{}.Transport())
	require.NotNil(t, retryhttp.NewBase().Proxy, "which only a guard forbids")
}

// FuzzGuard checks that Check agrees with slowRule, that Control agrees with Check, that a mapped address is judged
// as the IPv4 address, and that Allow opens what it names.
func FuzzGuard(f *testing.F) {
	for _, row := range blockedRanges {
		for _, text := range []string{row.first, row.last} {
			b := netip.MustParseAddr(text).As16()
			f.Add(b[:], "", uint8(24))
		}
	}
	f.Add([]byte{127, 0, 0, 1}, "", uint8(32))
	f.Add([]byte{}, "", uint8(0))
	for _, text := range []string{"2002:a00:1::1", "2002:808:808::5efe:a9fe:a9fe", "2606:4700::200:5efe:10.0.0.1", "2606:4700::5efe:8.8.8.8", "64:ff9b::10.0.0.1"} {
		b := netip.MustParseAddr(text).As16()
		f.Add(b[:], "eth0", uint8(64))
	}

	f.Fuzz(func(t *testing.T, b []byte, zone string, bits uint8) {
		addr, _ := netip.AddrFromSlice(b) // the zero Addr for other lengths
		addr = addr.WithZone(zone)
		err := ssrf.Guard{}.Check(addr)
		require.Equal(t, slowRule(addr), ruleOf(t, addr), "%v: %v", addr, err)
		require.Equal(t, err != nil, errors.Is(err, ssrf.ErrBlocked))

		if !addr.IsValid() {
			return
		}
		addrPort := netip.AddrPortFrom(addr, 443).String()
		require.Equal(t, err != nil, ssrf.Guard{}.Control("tcp", addrPort, nil) != nil, "%v", addrPort)
		if addr.Is4() {
			mapped := netip.AddrFrom16(addr.As16())
			require.Equal(t, err != nil, ssrf.Guard{}.Check(mapped) != nil, "%v", mapped)
		}
		prefix := netip.PrefixFrom(addr, int(bits)%(addr.BitLen()+1))
		if addr.Is4In6() && prefix.Bits() < 96 {
			return // IPv6, and the address is IPv4
		}
		require.NoError(t, ssrf.Guard{Allow: []netip.Prefix{prefix}}.Check(addr), "%v", prefix)
	})
}

// slowRule is the rule of addr by comparing numbers. IPv6 is one range of 128 bits with IPv4 at ::ffff:0:0.
func slowRule(addr netip.Addr) string {
	if !addr.IsValid() {
		return "not-an-ip"
	}
	n := new(big.Int).SetBytes(net.ParseIP(addr.WithZone("").String()).To16())
	for _, row := range blockedRanges {
		first, last := number(row.first), number(row.last)
		if first.Cmp(n) <= 0 && n.Cmp(last) <= 0 {
			return row.rule
		}
	}
	digits := fmt.Sprintf("%032x", n)
	rule := ""
	if strings.HasPrefix(digits, "2002") {
		rule = slowRule(fourBytes(digits[4:12]))
	}
	if strings.HasPrefix(digits, "0064ff9b0000000000000000") || digits[16:24] == "00005efe" || digits[16:24] == "02005efe" {
		rule = cmp.Or(rule, slowRule(fourBytes(digits[24:])))
	}
	if rule == "" && addr.Zone() != "" {
		return "zone"
	}
	return rule
}

func number(text string) *big.Int { return new(big.Int).SetBytes(net.ParseIP(text).To16()) }

// fourBytes returns the IPv4 address of eight hexadecimal digits.
func fourBytes(digits string) netip.Addr {
	n, _ := new(big.Int).SetString(digits, 16)
	var b [4]byte
	n.FillBytes(b[:])
	return netip.AddrFrom4(b)
}

func BenchmarkGuardCheck(b *testing.B) {
	for _, text := range []string{"8.8.8.8", "2606:4700:4700::1111", "64:ff9b::8.8.8.8"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			addr := netip.MustParseAddr(text)
			for b.Loop() {
				_ = ssrf.Guard{}.Check(addr)
			}
		})
	}
}
