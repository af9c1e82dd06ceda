// Package kernel makes the kernel carry the traffic of Services: it reads and writes nf_tables and the connection
// tracking table, and switches on the settings that these need. It speaks netlink itself; no nft program is needed.
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

// Table is the kernel's table. Only one goroutine at a time may use it.
type Table struct {
	table table.Table
	// use is the table's last number of chains and sets; a change shows that another program has changed the table.
	use uint32
}

// NewTable returns a table that has not been compared with the kernel yet.
func NewTable(name string) *Table { return &Table{table: table.Table{Name: name}} }

// patience bounds the wait for the kernel's answers.
const patience = time.Minute

// dial opens a connection for a transaction of that many elements, which is sent and acknowledged as a whole.
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

// Program makes the table what is wanted in one transaction, regardless of its contents: an earlier agent's table
// stays in force until then, and what does not change in it is not touched. It returns how many elements were added
// and removed.
func (t *Table) Program(want table.Ruleset) (int, error) {
	found, fits, err := t.read()
	if err != nil {
		return 0, err
	}
	if fits {
		n, err := t.commit(t.table.Update(found, want))
		if err == nil {
			return n, t.standIn().Remove() // left by an agent that died while it recreated the table
		}
	}
	return t.Recreate(want)
}

// Recreate deletes the table and creates it again. At that moment a packet may be passing through rules whose sets
// are gone: a second table carries it meanwhile.
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

// Apply applies changes, for a node, to the table as it was left. It returns how many elements were added and
// removed.
func (t *Table) Apply(c table.Changes, node plan.Node) (int, error) {
	if c.Empty() {
		return 0, nil
	}
	return t.commit(t.table.Change(c, node))
}

// standIn returns the table that carries packets while this one is recreated.
func (t *Table) standIn() *Table { return &Table{table: t.table.StandIn()} }

// Exists reports whether the kernel has the table.
func (t *Table) Exists() bool {
	_, exists := t.usage()
	return exists
}

// Untouched reports whether the table still exists with as many chains and sets as it was left with.
func (t *Table) Untouched() bool {
	use, exists := t.usage()
	return exists && use == t.use
}

// usage returns how many chains and sets the table has; false if it does not exist.
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

// Remove deletes the table; a missing one is no error.
func (t *Table) Remove() error {
	if _, err := t.commit(t.table.Delete()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Remove deletes the table of that name and its stand-in.
func Remove(name string) error {
	t := NewTable(name)
	return errors.Join(t.Remove(), t.standIn().Remove())
}
