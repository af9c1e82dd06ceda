package serviceproxy

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
)

// kernel is the firewall table of the node's Services. It speaks netlink itself; no nft program is needed.
type kernel struct {
	table *nftables.Table
	// use is how many chains and sets the table had last, so that a table that somebody else has changed is noticed.
	use uint32
}

func newKernel(table string) *kernel {
	return &kernel{table: &nftables.Table{Family: nftables.TableFamilyINet, Name: table}}
}

// patience bounds what waits for the kernel's answers.
const patience = time.Minute

// dial opens a connection for a transaction of that many elements, which is sent and acknowledged in one piece.
func dial(elements int) (*nftables.Conn, error) {
	const most, element, fixed = 1 << 30, 256, 1 << 20
	size := min(most, fixed+elements*element)
	return nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetWriteBuffer(size), c.SetReadBuffer(size), c.SetDeadline(time.Now().Add(patience)))
	}))
}

// wanted is all that the table has to hold.
type wanted struct {
	elements map[string]map[string]string
	picks    []Pick
	lengths  []Length
	node     Node
}

// takeOver makes the table what is wanted in one transaction, whatever it holds: that of an agent before stays in force
// until then, and what does not change in it is not touched.
func (k *kernel) takeOver(w wanted) (int, error) {
	found, fits, err := k.read()
	if err != nil {
		return 0, err
	}
	if fits {
		n, err := k.replace(w, found, false)
		if err == nil {
			return n, k.meanwhile().remove() // of an agent that died while it renewed the table
		}
	}
	return k.renew(w)
}

// renew makes the table anew. In the moment in which it changes, a packet may be on its way through rules whose sets
// are gone: meanwhile a second table is there to lead it.
func (k *kernel) renew(w wanted) (int, error) {
	second := k.meanwhile()
	if _, there := k.usage(); !there {
		n, err := k.replace(w, nil, true)
		return n, errors.Join(err, second.remove())
	}
	if _, err := second.replace(w, nil, true); err != nil {
		return 0, err
	}
	n, err := k.replace(w, nil, true)
	return n, errors.Join(err, second.remove())
}

// meanwhile is the table that takes the place of this one while it is renewed.
func (k *kernel) meanwhile() *kernel { return newKernel(k.table.Name + "-meanwhile") }

// read returns the elements of the table, if it is one that this version understands.
func (k *kernel) read() (map[string]map[string]string, bool, error) {
	conn, err := dial(1 << 14)
	if err != nil {
		return nil, false, fmt.Errorf("opening the firewall: %w", err)
	}
	there, err := conn.GetSets(k.table)
	if err != nil || len(there) == 0 {
		return nil, false, nil // no table, or one without sets
	}
	byName := map[string]*nftables.Set{}
	for _, s := range there {
		byName[s.Name] = s
	}
	out := map[string]map[string]string{}
	for _, s := range k.sets() {
		known := byName[s.Name]
		if known == nil || known.IsMap != s.IsMap {
			return nil, false, nil
		}
		if s.DataType == nftables.TypeVerdict || s.HasTimeout {
			continue
		}
		if known.KeyType.Bytes != s.KeyType.Bytes || known.DataType.Bytes != s.DataType.Bytes {
			return nil, false, nil
		}
		elements, err := conn.GetSetElements(s)
		if err != nil {
			return nil, false, fmt.Errorf("reading the set %s of the firewall table %s: %w", s.Name, k.table.Name, err)
		}
		held := make(map[string]string, len(elements))
		for _, e := range elements {
			held[string(e.Key)] = string(e.Val)
		}
		out[s.Name] = held
	}
	return out, true, nil
}

// replace writes the whole table; anew, or as the difference to what was found.
func (k *kernel) replace(w wanted, found map[string]map[string]string, anew bool) (int, error) {
	c := difference(found, w.elements)
	conn, err := dial(len(c.Gone) + len(c.New))
	if err != nil {
		return 0, fmt.Errorf("opening the firewall: %w", err)
	}
	chains := fixedChains(w.node, w.lengths)
	for _, p := range w.picks {
		chains[p.chain()] = k.rulesOf(p)
	}
	there, err := k.chains(conn)
	if err != nil {
		return 0, err
	}
	conn.AddTable(k.table)
	if anew {
		conn.DelTable(k.table)
		conn.AddTable(k.table)
		there = nil
		for _, s := range k.sets() {
			if err := conn.AddSet(s, nil); err != nil {
				return 0, fmt.Errorf("describing the set %s: %w", s.Name, err)
			}
		}
	}
	for name := range chains {
		conn.AddChain(k.chain(name))
	}
	for _, name := range there {
		conn.FlushChain(&nftables.Chain{Table: k.table, Name: name})
	}
	if err := k.lead(conn, w.picks, !anew); err != nil {
		return 0, err
	}
	for name, rules := range chains {
		k.addRules(conn, name, rules)
	}
	for _, name := range there {
		if _, stays := chains[name]; !stays {
			conn.DelChain(&nftables.Chain{Table: k.table, Name: name})
		}
	}
	if err := k.edit(conn, c); err != nil {
		return 0, err
	}
	return len(c.Gone) + len(c.New), k.flush(conn)
}

// apply carries out a change.
func (k *kernel) apply(c Changes, node Node) error {
	conn, err := dial(len(c.Gone) + len(c.New))
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	if c.LengthsChanged {
		chains := fixedChains(node, c.Lengths)
		for _, r := range families {
			name := r.name(chainFirewall)
			conn.FlushChain(k.chain(name))
			k.addRules(conn, name, chains[name])
		}
	}
	for _, p := range c.NewPicks {
		conn.AddChain(k.chain(p.chain()))
		k.addRules(conn, p.chain(), k.rulesOf(p))
		if err := conn.SetAddElements(k.setOf(setPicks, p.Six), []nftables.SetElement{p.element()}); err != nil {
			return fmt.Errorf("describing a chain: %w", err)
		}
	}
	if err := k.edit(conn, c); err != nil {
		return err
	}
	for _, p := range c.GonePicks {
		if err := conn.SetDeleteElements(k.setOf(setPicks, p.Six), []nftables.SetElement{{Key: p.key()}}); err != nil {
			return fmt.Errorf("describing a chain: %w", err)
		}
		conn.DelChain(k.chain(p.chain()))
	}
	return k.flush(conn)
}

func (k *kernel) flush(conn *nftables.Conn) error {
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("writing the firewall table %s: %w", k.table.Name, err)
	}
	k.use, _ = k.usage()
	return nil
}

func (p Pick) element() nftables.SetElement {
	return nftables.SetElement{Key: p.key(), VerdictData: verdict(p.chain())}
}

func (k *kernel) rulesOf(p Pick) rules {
	if p.Count == 0 {
		return rules{drop()}
	}
	return layout(p.Six).pickRules(p)
}

// lead fills the maps that lead to chains.
func (k *kernel) lead(conn *nftables.Conn, picks []Pick, empty bool) error {
	for _, r := range families {
		classes, choices := k.setOf(setClasses, r.six), k.setOf(setPicks, r.six)
		if empty {
			conn.FlushSet(classes)
			conn.FlushSet(choices)
		}
		var elements []nftables.SetElement
		for class, chain := range classChains {
			elements = append(elements, nftables.SetElement{Key: []byte(word(uint32(class))),
				VerdictData: verdict(r.name(chain))})
		}
		err := conn.SetAddElements(classes, elements)
		for _, p := range picks {
			if p.Six == r.six {
				err = errors.Join(err, conn.SetAddElements(choices, []nftables.SetElement{p.element()}))
			}
		}
		if err != nil {
			return fmt.Errorf("describing the chains: %w", err)
		}
	}
	return nil
}

// chain describes a chain as the kernel has to make it.
func (k *kernel) chain(name string) *nftables.Chain {
	c := &nftables.Chain{Table: k.table, Name: name}
	if name == "nat-"+chainLeaving {
		c.Type, c.Hooknum, c.Priority = nftables.ChainTypeNAT, nftables.ChainHookPostrouting,
			nftables.ChainPriorityNATSource
	}
	for _, h := range hooks {
		if h.name == name {
			c.Type, c.Hooknum, c.Priority = h.kind, h.hook, &h.priority
		}
	}
	return c
}

func (k *kernel) addRules(conn *nftables.Conn, chain string, all rules) {
	for _, exprs := range all {
		conn.AddRule(&nftables.Rule{Table: k.table, Chain: &nftables.Chain{Table: k.table, Name: chain}, Exprs: exprs})
	}
}

// chains are the names of those that the table has.
func (k *kernel) chains(conn *nftables.Conn) ([]string, error) {
	all, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, fmt.Errorf("reading the firewall's chains: %w", err)
	}
	var out []string
	for _, c := range all {
		if c.Table.Name == k.table.Name {
			out = append(out, c.Name)
		}
	}
	return out, nil
}

// message is how many elements one message carries: its list may have 64 KiB.
const message = 400

// edit takes elements away and adds others.
func (k *kernel) edit(conn *nftables.Conn, c Changes) error {
	for name, gone := range bySet(c.Gone, false) {
		for chunk := range slices.Chunk(gone, message) {
			if err := conn.SetDeleteElements(&nftables.Set{Table: k.table, Name: name}, chunk); err != nil {
				return fmt.Errorf("describing elements of %s: %w", name, err)
			}
		}
	}
	for name, more := range bySet(c.New, true) {
		for chunk := range slices.Chunk(more, message) {
			if err := conn.SetAddElements(&nftables.Set{Table: k.table, Name: name}, chunk); err != nil {
				return fmt.Errorf("describing elements of %s: %w", name, err)
			}
		}
	}
	return nil
}

func bySet(elements []Element, values bool) map[string][]nftables.SetElement {
	out := map[string][]nftables.SetElement{}
	for _, e := range elements {
		element := nftables.SetElement{Key: []byte(e.Key)}
		if values {
			element.Val = []byte(e.Value)
		}
		out[e.Set] = append(out[e.Set], element)
	}
	return out
}

// difference leads from what was found to what is wanted.
func difference(found, want map[string]map[string]string) Changes {
	var c Changes
	for _, name := range kept {
		for _, r := range families {
			set := r.name(name)
			for key, value := range found[set] {
				if now, stays := want[set][key]; !stays || now != value {
					c.Gone = append(c.Gone, Element{set, key, value})
				}
			}
			for key, value := range want[set] {
				if before, there := found[set][key]; !there || before != value {
					c.New = append(c.New, Element{set, key, value})
				}
			}
		}
	}
	return c
}

// usage is how many chains and sets the table has; false without one.
func (k *kernel) usage() (uint32, bool) {
	conn, err := dial(0)
	if err != nil {
		return 0, false
	}
	table, err := conn.ListTableOfFamily(k.table.Name, nftables.TableFamilyINet)
	if err != nil || table == nil {
		return 0, false
	}
	return table.Use, true
}

// stands says whether the table is still there and as large as it was left.
func (k *kernel) stands() bool {
	use, there := k.usage()
	return there && use == k.use
}

// remove takes the table away; one that is not there is no error.
func (k *kernel) remove() error {
	conn, err := dial(0)
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	conn.DelTable(k.table)
	if err := conn.Flush(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the firewall table %s: %w", k.table.Name, err)
	}
	return nil
}
