// Package kernel has the kernel carry the traffic of Services: it reads and writes nf_tables and the connections that
// the kernel follows, and switches on what these need. It speaks netlink itself; no nft program is needed.
package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
	"keelson.dev/services/nodeagent/internal/serviceproxy/table"
)

// Table is the kernel's table. It is used by one goroutine at a time.
type Table struct {
	table table.Table
	// use is how many chains and sets the table had last, so that a table that somebody else has changed is noticed.
	use uint32
}

// NewTable has not looked at the kernel yet.
func NewTable(name string) *Table { return &Table{table: table.Table{Name: name}} }

// patience bounds what waits for the kernel's answers.
const patience = time.Minute

// dial opens a connection for a transaction of that many elements, which is sent and acknowledged in one piece.
func dial(elements int) (*nftables.Conn, error) {
	const most, element, fixed = 1 << 30, 256, 1 << 20
	size := min(most, fixed+elements*element)
	conn, err := nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetWriteBuffer(size), c.SetReadBuffer(size), c.SetDeadline(time.Now().Add(patience)))
	}))
	if err != nil {
		return nil, fmt.Errorf("opening the firewall: %w", err)
	}
	return conn, nil
}

// Program makes the table what is wanted in one transaction, whatever it holds: that of an agent before stays in force
// until then, and what does not change in it is not touched. It returns how many elements have come and gone.
func (t *Table) Program(want table.Ruleset) (int, error) {
	found, fits, err := t.read()
	if err != nil {
		return 0, err
	}
	if fits {
		n, err := t.commit(t.table.Update(found, want))
		if err == nil {
			return n, t.standIn().Remove() // of an agent that died while it made the table anew
		}
	}
	return t.Recreate(want)
}

// Recreate makes the table anew. In the moment in which it changes, a packet may be on its way through rules whose sets
// are gone: meanwhile a second table is there to lead it.
func (t *Table) Recreate(want table.Ruleset) (int, error) {
	second := t.standIn()
	if !t.Exists() {
		n, err := t.commit(t.table.Create(want))
		return n, errors.Join(err, second.Remove())
	}
	if _, err := second.commit(second.table.Create(want)); err != nil {
		return 0, err
	}
	n, err := t.commit(t.table.Create(want))
	return n, errors.Join(err, second.Remove())
}

// Apply carries out a change of what the table was left with on a node. It returns how many elements have come and
// gone.
func (t *Table) Apply(c table.Changes, node plan.Node) (int, error) {
	if c.Empty() {
		return 0, nil
	}
	return t.commit(t.table.Change(c, node))
}

// standIn leads packets while this table is made anew.
func (t *Table) standIn() *Table { return &Table{table: t.table.StandIn()} }

// Exists tells whether the kernel has the table.
func (t *Table) Exists() bool {
	_, exists := t.usage()
	return exists
}

// Untouched tells whether the table is still there and as large as it was left.
func (t *Table) Untouched() bool {
	use, exists := t.usage()
	return exists && use == t.use
}

// usage is how many chains and sets the table has; false without one.
func (t *Table) usage() (uint32, bool) {
	conn, err := dial(0)
	if err != nil {
		return 0, false
	}
	found, err := conn.ListTableOfFamily(t.table.Name, nftables.TableFamilyINet)
	if err != nil || found == nil {
		return 0, false
	}
	return found.Use, true
}

// Remove takes the table away; one that is not there is no error.
func (t *Table) Remove() error {
	if _, err := t.commit(t.table.Delete()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Remove takes the table of that name away, and what stands in for it.
func Remove(name string) error {
	t := NewTable(name)
	return errors.Join(t.Remove(), t.standIn().Remove())
}
