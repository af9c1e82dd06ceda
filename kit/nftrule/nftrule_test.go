package nftrule

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/nftables/expr"
)

// RFC 791 and RFC 8200 say where a header has its addresses.
func TestAddress(t *testing.T) {
	for _, row := range []struct {
		field          Field
		prefix         string
		offset, length uint32
		mask, network  string
	}{
		{Source, "10.244.1.9/20", 12, 4, "fffff000", "0af40000"},
		{Destination, "10.244.1.9/32", 16, 4, "ffffffff", "0af40109"},
		{Destination, "0.0.0.0/0", 16, 4, "00000000", "00000000"},
		{Source, "fd00::9/44", 8, 16, "fffffffffff000000000000000000000", "fd000000000000000000000000000000"},
		{Destination, "fd00::9/128", 24, 16, "ffffffffffffffffffffffffffffffff", "fd000000000000000000000000000009"},
	} {
		rule := Address(row.field, expr.CmpOpNeq, netip.MustParsePrefix(row.prefix))
		load, mask, compare := rule[0].(*expr.Payload), rule[1].(*expr.Bitwise), rule[2].(*expr.Cmp)
		if load.Offset != row.offset || load.Len != row.length || mask.Len != row.length ||
			len(mask.Xor) != int(row.length) || fmt.Sprintf("%x", mask.Mask) != row.mask ||
			fmt.Sprintf("%x", compare.Data) != row.network || compare.Op != expr.CmpOpNeq {
			t.Errorf("%s of %v: bytes %d+%d, mask %x of %d, compared with %x", row.prefix, row.field, load.Offset,
				load.Len, mask.Mask, mask.Len, compare.Data)
		}
	}
}
