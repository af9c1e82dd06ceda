package plan

import "testing"

func TestDecideNetwork(t *testing.T) {
	for _, row := range []struct {
		in   NetworkInput
		want Network
	}{
		{NetworkInput{Routes, NFTables, 0}, Network{}},
		{NetworkInput{Routes, NFTables, 1}, Network{PodsStart: true, Names: true}},
		{NetworkInput{VXLAN, NFTables, 2}, Network{Masquerade: true, PodsStart: true, Names: true}},
		{NetworkInput{Routes, Others, 1}, Network{PodsStart: true}},
		{NetworkInput{Others, NFTables, 1}, Network{}},
		{NetworkInput{Others, Others, 2}, Network{Masquerade: true}},
	} {
		if got := DecideNetwork(row.in); got != row.want {
			t.Errorf("%+v: got %+v, want %+v", row.in, got, row.want)
		}
	}
}

func TestWhoKeepsTheNetwork(t *testing.T) {
	for _, text := range []string{"routes", "vxlan", "none"} {
		if err := CheckPodNetwork(text); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"nftables", "none"} {
		if err := CheckServiceProxy(text); err != nil {
			t.Error(err)
		}
	}
	for _, err := range []error{CheckPodNetwork(""), CheckPodNetwork("nftables"), CheckServiceProxy(""),
		CheckServiceProxy("routes")} {
		if err == nil {
			t.Error("it is taken")
		}
	}
}
