# Installing and removing. For packages: DESTDIR=, PREFIX=/usr, LIBDIR=/usr/lib/x86_64-linux-gnu. The parser and its grammars are private
# to the program and stay in PREFIX/lib/lode, where it looks for them.
LIBDIR ?= $(PREFIX)/lib

.PHONY: install install-files uninstall
# The grammars first: which programs there are to build is known when make reads its files
install:
	@tools/grammars.sh $(GRAMMARS)
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory install-files

install-files:
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include \
	  $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d \
	  $(DESTDIR)$(PREFIX)/share/lode/models
	install -m 644 models/code/code.model models/code/words.glossary $(DESTDIR)$(PREFIX)/share/lode/models
	install -m 755 $(OUT)/lode $(DESTDIR)$(PREFIX)/bin/lode
	if [ -n "$(PARSER)" ]; then install -d $(DESTDIR)$(PREFIX)/lib/lode/grammars && \
	  install -m 755 $(OUT)/lode-parser $(DESTDIR)$(PREFIX)/lib/lode/lode-parser && \
	  install -m 644 $(GRAMMARS)/*.so $(DESTDIR)$(PREFIX)/lib/lode/grammars/; \
	  else echo "install: without grammars, code is cut by lines; make grammars && make install adds them"; fi
	install -m 644 include/lode.h $(DESTDIR)$(PREFIX)/include/lode.h
	install -m 644 $(OUT)/liblode.a $(DESTDIR)$(LIBDIR)/liblode.a
	install -m 755 $(OUT)/$(LIB_FILE) $(DESTDIR)$(LIBDIR)/$(LIB_FILE)
	ln -sf $(LIB_FILE) $(DESTDIR)$(LIBDIR)/$(LIB_ABI)
	ln -sf $(LIB_ABI) $(DESTDIR)$(LIBDIR)/$(LIB_LINK)
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/lib/systemd/user
	sed 's|/usr/local|$(PREFIX)|' etc/systemd/lode-serve.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/lode-serve.service
	sed 's|/usr/local|$(PREFIX)|' etc/systemd/lode-watch@.service >$(DESTDIR)$(PREFIX)/lib/systemd/user/lode-watch@.service
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' -e 's|@VERSION@|$(VERSION)|' tools/lode.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/lode.pc
	$(OUT)/lode help --man >$(DESTDIR)$(PREFIX)/share/man/man1/lode.1
	$(OUT)/lode help db --man >$(DESTDIR)$(PREFIX)/share/man/man1/lode-db.1
	$(OUT)/lode help --list | while read -r command; do \
	  $(OUT)/lode help $$command --man >"$(DESTDIR)$(PREFIX)/share/man/man1/lode-$$(echo "$$command" | tr ' ' -).1" || exit 1; done
	$(OUT)/lode help --completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/lode
	$(OUT)/lode help --completions zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_lode
	$(OUT)/lode help --completions fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/lode.fish

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/lib/systemd/system/lode-serve.service $(DESTDIR)$(PREFIX)/lib/systemd/user/lode-watch@.service
	rm -f $(DESTDIR)$(PREFIX)/lib/lode/grammars/*.so $(DESTDIR)$(PREFIX)/lib/lode/lode-parser
	rmdir $(DESTDIR)$(PREFIX)/lib/lode/grammars $(DESTDIR)$(PREFIX)/lib/lode 2>/dev/null || true
	rm -f $(DESTDIR)$(PREFIX)/bin/lode $(DESTDIR)$(PREFIX)/include/lode.h $(DESTDIR)$(LIBDIR)/liblode.* \
	  $(DESTDIR)$(LIBDIR)/pkgconfig/lode.pc $(DESTDIR)$(PREFIX)/share/man/man1/lode.1 \
	  $(DESTDIR)$(PREFIX)/share/man/man1/lode-*.1 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/lode $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_lode \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/lode.fish $(DESTDIR)$(PREFIX)/share/lode/models/code.model \
	  $(DESTDIR)$(PREFIX)/share/lode/models/words.glossary

