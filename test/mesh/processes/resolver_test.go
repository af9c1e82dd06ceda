package processes

import (
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestNoSuchName(t *testing.T) {
	question := dnsmessage.Question{
		Name: dnsmessage.MustNewName("strict."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
	}
	packet, err := (&dnsmessage.Message{
		Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{question},
	}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(noSuchName(packet)); err != nil {
		t.Fatal(err)
	}
	if answer.ID != 7 || !answer.Response || answer.RCode != dnsmessage.RCodeNameError ||
		len(answer.Questions) != 1 || answer.Questions[0] != question {
		t.Errorf("the answer is %+v", answer)
	}
	for what, packet := range map[string][]byte{"no packet": nil, "half a packet": packet[:14],
		"an answer": noSuchName(packet)} {
		if got := noSuchName(packet); got != nil {
			t.Errorf("%s is answered: %v", what, got)
		}
	}
}
