package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"keelson.dev/test/images/sctp"
)

// ending is how the process is to end.
type ending struct {
	code  int
	crash bool
}

// Server is one running test server.
type Server struct {
	options options
	health  *health
	out     *lines
	end     chan ending
	stops   []func()
	held    [][]byte // memory that requests asked for; only the end frees it
	heldMu  sync.Mutex
	http    string // the address that the HTTP server got
	tcp     string
	udp     string
	grpc    string
}

// lines writes whole lines from several goroutines.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, format+"\n", args...)
}

// Main serves until a signal, a request or a flag ends it, and returns the exit status.
func Main(args []string, out, errOut io.Writer) int {
	o, err := parse(args, errOut)
	if err != nil {
		fmt.Fprintln(errOut, "testserver:", err)
		return 2
	}
	s := &Server{options: o, health: newHealth(time.Now(), o), out: &lines{out: out}, end: make(chan ending, 1)}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals)
	defer signal.Stop(signals)
	go s.watchSignals(signals)
	time.Sleep(o.startDelay)
	if err := s.listen(); err != nil {
		fmt.Fprintln(errOut, "testserver:", err)
		return 1
	}
	s.startTimers()
	last := <-s.end
	s.close()
	return s.finish(last)
}

func (s *Server) listen() error {
	for _, l := range []struct {
		what, address string
		got           *string
		serve         func(net.Listener)
	}{
		{"http", s.options.httpAddress, &s.http, s.serveHTTP},
		{"tcp", s.options.tcpAddress, &s.tcp, s.serveTCP},
		{"grpc", s.options.grpcAddress, &s.grpc, s.serveGRPC},
	} {
		if l.address == "" {
			continue
		}
		listener, err := net.Listen("tcp", l.address)
		if err != nil {
			return fmt.Errorf("listening for %s: %w", l.what, err)
		}
		*l.got = listener.Addr().String()
		s.stops = append(s.stops, func() { listener.Close() })
		s.out.printf("serving %s on %s", l.what, *l.got)
		go l.serve(listener)
	}
	if err := s.listenSCTP(); err != nil {
		return err
	}
	return s.listenUDP()
}

func (s *Server) listenSCTP() error {
	if s.options.sctpPort == 0 {
		return nil
	}
	stop, err := sctp.Serve(uint16(s.options.sctpPort), host())
	if err != nil {
		return fmt.Errorf("listening for sctp: %w", err)
	}
	s.stops = append(s.stops, stop)
	s.out.printf("serving sctp on port %d", s.options.sctpPort)
	return nil
}

func (s *Server) listenUDP() error {
	if s.options.udpAddress == "" {
		return nil
	}
	conn, err := net.ListenPacket("udp", s.options.udpAddress)
	if err != nil {
		return fmt.Errorf("listening for udp: %w", err)
	}
	s.udp = conn.LocalAddr().String()
	s.stops = append(s.stops, func() { _ = conn.Close() })
	s.out.printf("serving udp on %s", s.udp)
	go func() {
		datagram := make([]byte, 1024)
		for {
			_, from, err := conn.ReadFrom(datagram)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = conn.WriteTo([]byte(host()+"\n"), from)
			}
		}
	}()
	return nil
}

func (s *Server) close() {
	for _, stop := range s.stops {
		stop()
	}
}

func (s *Server) serveHTTP(listener net.Listener) {
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
	if err := server.Serve(listener); !errors.Is(err, net.ErrClosed) {
		s.out.printf("http: %v", err)
	}
}

// serveTCP sends back what it gets; a bare connection is a passed TCP check.
func (s *Server) serveTCP(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}

func (s *Server) serveGRPC(listener net.Listener) {
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, &grpcHealth{health: s.health})
	if err := server.Serve(listener); err != nil && !errors.Is(err, net.ErrClosed) {
		s.out.printf("grpc: %v", err)
	}
}

// startTimers starts the actions that need no request.
func (s *Server) startTimers() {
	if s.options.exitAfter > 0 {
		time.AfterFunc(s.options.exitAfter, func() { s.stop(ending{code: s.options.exitCode, crash: s.options.crash}) })
	} else if s.options.crash {
		s.stop(ending{crash: true})
	}
	if s.options.logEvery > 0 {
		go func() {
			for i := 1; ; i++ {
				s.out.printf("line %d", i)
				time.Sleep(s.options.logEvery)
			}
		}()
	}
}

// stop asks for the end; only the first one counts.
func (s *Server) stop(how ending) {
	select {
	case s.end <- how:
	default:
	}
}

func (s *Server) hold(block []byte) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	s.held = append(s.held, block)
}

func (s *Server) watchSignals(signals <-chan os.Signal) {
	for received := range signals {
		switch received {
		case syscall.SIGURG, syscall.SIGCHLD, syscall.SIGPIPE, syscall.SIGWINCH:
			continue // the runtime's own
		}
		s.out.printf("received %v at %s", received, time.Now().UTC().Format(time.RFC3339Nano))
		if received != syscall.SIGTERM && received != syscall.SIGINT {
			continue
		}
		if received == syscall.SIGTERM && s.options.ignoreTerm {
			continue
		}
		time.AfterFunc(s.options.termDelay, func() { s.stop(ending{code: s.options.termExitCode}) })
	}
}

// finish leaves the last words and returns the exit status.
func (s *Server) finish(how ending) int {
	if s.options.terminationMessage != "" {
		if err := os.WriteFile(s.options.terminationPath, []byte(s.options.terminationMessage), 0o644); err != nil {
			s.out.printf("writing the termination message: %v", err)
		}
	}
	s.out.printf("ending with status %d", how.code)
	if how.crash {
		if err := crashNow(); err != nil {
			s.out.printf("crashing: %v", err)
		}
	}
	return how.code
}

// crashNow ends the process the way a broken program ends. As the first process of a container it cannot be killed by
// its own signal, so the exit status says what a shell would say of it.
func crashNow() error {
	if os.Getpid() == 1 {
		os.Exit(128 + int(syscall.SIGKILL))
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}
