#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// lode.js - starts the program of this platform's package: same standard input, output and error, same arguments; signals are passed on,
// and its end, by a status or by a signal, becomes this process's own.
'use strict';
const { spawn } = require('child_process');
const path = require('path');

const name = `lodekit-${process.platform}-${process.arch}`;
let program;
try {
  program = path.join(path.dirname(require.resolve(`${name}/package.json`)), 'bin', 'lode');
} catch (error) {
  console.error(`lode: the package ${name}, which has the program for this machine, is not installed: ` +
    'install lodekit without --omit=optional, or build Lode from its source');
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH', 'SIGCONT'])
  process.on(signal, () => child.kill(signal));
// npx starts this in a shell of its own, which a signal ends without being passed on: the end of that shell is taken for SIGTERM
if (process.env.npm_command === 'exec') {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    child.kill('SIGTERM');
  }, 200);
}
child.on('error', (error) => {
  console.error(`lode: ${program}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  setTimeout(() => process.exit(1), 1000); // a signal that does not end this process
});
