// Command guest runs inside a machine of the tests and does what the test asks for: it runs commands. It answers only
// on the network between the machine and its emulator.
package main

import (
	"errors"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"keelson.dev/test/vm/wire"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.BootPath, boot)
	mux.HandleFunc("POST "+wire.RunPath, run)
	server := &http.Server{Addr: wire.Address, Handler: mux, ReadHeaderTimeout: time.Minute}
	log.Fatal(server.ListenAndServe())
}

// boot returns the ID of this boot of the machine.
func boot(w http.ResponseWriter, _ *http.Request) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte(strings.TrimSpace(string(id))))
}

// run runs a command until it ends or the request does. The answer is what it printed; how it ended is a trailer.
func run(w http.ResponseWriter, r *http.Request) {
	argv := r.URL.Query()[wire.ArgumentKey]
	if len(argv) == 0 {
		http.Error(w, "no command is given", http.StatusBadRequest)
		return
	}
	w.Header().Set("Trailer", wire.CodeTrailer)
	command := exec.CommandContext(r.Context(), argv[0], argv[1:]...)
	command.Stdin, command.Stdout, command.Stderr = r.Body, w, w
	command.WaitDelay = time.Second // a daemon that it leaves behind may keep its output open
	err := command.Run()
	code := 0
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		code = ended.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		_, _ = w.Write([]byte(err.Error()))
		code = wire.NotRun
	}
	w.Header().Set(wire.CodeTrailer, strconv.Itoa(code))
}
