CC ?= cc
CFLAGS := -O2 -Wall
OBJS = main.o ring.o

define banner
	@echo "== $(1)"
	@date
endef

all: prog
	@echo built

# Links the program.
prog: $(OBJS)
	$(CC) $(CFLAGS) -o $@ $^
	strip $@
	ls -l $@

%.o: %.c
	$(CC) $(CFLAGS) -c -o $@ $<

.PHONY: all clean
clean:
	rm -f prog $(OBJS)
	rm -rf build
