package filter

import (
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// program is a filter under construction. Conditional jumps reach 255 instructions forward, unconditional ones any
// distance.
type program struct{ code []unix.SockFilter }

func (p *program) emit(code uint16, k uint32) int {
	p.code = append(p.code, unix.SockFilter{Code: code, K: k})
	return len(p.code) - 1
}

// load reads a word of the call's data.
func (p *program) load(offset uint32) { p.emit(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset) }

// end decides the call.
func (p *program) end(action uint32) { p.emit(unix.BPF_RET|unix.BPF_K, action) }

// when decides the call if the loaded word compares so.
func (p *program) when(comparison uint16, k, action uint32) {
	at := p.emit(unix.BPF_JMP|comparison|unix.BPF_K, k)
	p.code[at].Jf = 1
	p.end(action)
}

// unless jumps away if the loaded word differs; land says where to.
func (p *program) unless(k uint32) (jump int) {
	at := p.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k)
	p.code[at].Jt = 1
	return p.emit(unix.BPF_JMP|unix.BPF_JA, 0)
}

// land makes the next instruction a jump's target.
func (p *program) land(jump int) { p.code[jump].K = uint32(len(p.code) - jump - 1) }

// call decides the calls of one number.
func (p *program) call(number uint32, rules []rule, otherwise uint32) {
	if len(rules) == 1 && len(rules[0].conditions) == 0 {
		p.when(unix.BPF_JEQ, number, rules[0].action)
		return
	}
	skip := p.unless(number)
	for _, rule := range rules {
		p.rule(rule)
	}
	// The loaded word is an argument by now, and no other rule is for this number.
	p.end(otherwise)
	p.land(skip)
}

// rule decides if all conditions hold, and otherwise goes on behind itself.
func (p *program) rule(r rule) {
	var failures []branch
	for _, condition := range r.conditions {
		failures = append(failures, p.condition(condition)...)
	}
	p.end(r.action)
	for _, failure := range failures {
		p.branchHere(failure)
	}
}

// branch is one of the two ways out of a conditional jump, whose target is not known yet.
type branch struct {
	at   int
	when bool
}

// branchHere leads a branch to the next instruction.
func (p *program) branchHere(b branch) {
	distance := uint8(len(p.code) - b.at - 1)
	if b.when {
		p.code[b.at].Jt = distance
	} else {
		p.code[b.at].Jf = distance
	}
}

func (p *program) compare(comparison uint16, k uint32) int {
	return p.emit(unix.BPF_JMP|comparison|unix.BPF_K, k)
}

// condition compares a 64-bit argument in two halves, goes on where it holds, and returns the ways on which it does
// not.
func (p *program) condition(arg *configs.Arg) (failures []branch) {
	low := argsOffset + 8*uint32(arg.Index)
	high := low + 4
	lowValue, highValue := uint32(arg.Value), uint32(arg.Value>>32)
	switch arg.Op {
	case configs.MaskEqualTo:
		for _, half := range []struct{ offset, mask, value uint32 }{
			{high, highValue, uint32(arg.ValueTwo >> 32)}, {low, lowValue, uint32(arg.ValueTwo)},
		} {
			p.load(half.offset)
			p.emit(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, half.mask)
			failures = append(failures, branch{p.compare(unix.BPF_JEQ, half.value), false})
		}
		return failures
	case configs.EqualTo:
		p.load(high)
		failures = append(failures, branch{p.compare(unix.BPF_JEQ, highValue), false})
		p.load(low)
		return append(failures, branch{p.compare(unix.BPF_JEQ, lowValue), false})
	case configs.NotEqualTo:
		p.load(high)
		differs := branch{p.compare(unix.BPF_JEQ, highValue), false}
		p.load(low)
		failures = append(failures, branch{p.compare(unix.BPF_JEQ, lowValue), true})
		p.branchHere(differs)
		return failures
	case configs.GreaterThan:
		return p.above(high, low, highValue, lowValue, unix.BPF_JGT)
	case configs.GreaterThanOrEqualTo:
		return p.above(high, low, highValue, lowValue, unix.BPF_JGE)
	case configs.LessThan:
		return p.below(high, low, highValue, lowValue, unix.BPF_JGE)
	default: // configs.LessThanOrEqualTo; runc has checked the operators
		return p.below(high, low, highValue, lowValue, unix.BPF_JGT)
	}
}

// above holds where the high half is greater, or is equal and the low half compares.
func (p *program) above(high, low, highValue, lowValue uint32, comparison uint16) (failures []branch) {
	p.load(high)
	greater := branch{p.compare(unix.BPF_JGT, highValue), true}
	failures = append(failures, branch{p.compare(unix.BPF_JEQ, highValue), false})
	p.load(low)
	failures = append(failures, branch{p.compare(comparison, lowValue), false})
	p.branchHere(greater)
	return failures
}

// below holds where the high half is less, or is equal and the low half does not compare.
func (p *program) below(high, low, highValue, lowValue uint32, comparison uint16) (failures []branch) {
	p.load(high)
	failures = append(failures, branch{p.compare(unix.BPF_JGT, highValue), true})
	less := branch{p.compare(unix.BPF_JEQ, highValue), false}
	p.load(low)
	failures = append(failures, branch{p.compare(comparison, lowValue), true})
	p.branchHere(less)
	return failures
}
