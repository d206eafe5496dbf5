// Package store keeps things.
package store

import (
	"fmt"
	"os"
)

const Max = 10

var (
	a = 1
	b = 2
)

// Server serves.
type Server struct {
	Addr string
	n    int
}

type Handler interface {
	Serve(w Writer) error
}

type ID int

// Start starts it.
func (s *Server) Start(ctx context.Context) error {
	fmt.Println(s.Addr)
	return nil
}

func New(addr string) *Server {
	return &Server{Addr: addr}
}
