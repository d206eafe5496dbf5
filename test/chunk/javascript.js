'use strict';
const fs = require('fs');

/**
 * Reads a file.
 * @param {string} p
 */
export async function readAll(p) {
  const x = await fs.readFile(p);
  return x;
}

export const add = (a, b) => {
  return a + b;
};

class Queue extends Base {
  #items = [];
  constructor(n) {
    super(n);
    this.n = n;
  }

  push(item) {
    this.#items.push(item);
    return this;
  }

  handler = async (e) => {
    e.preventDefault();
    return e;
  };
}

module.exports = {
  a: function () {
    return 1;
  },
  b,
};

Queue.prototype.size = function () {
  return this.n;
};

app.get('/', (req, res) => {
  res.send('hi');
});
