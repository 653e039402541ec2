// A fake host for commands under test: output is recorded, and files come from the test.

import type { Io } from '../../src/host/command.ts'

export type FakeIo = Io & { printed(): string; said(): string }

export function fakeIo(files: { readonly [path: string]: string } = {}, over: Partial<Io> = {}): FakeIo {
  const out: string[] = []
  const err: string[] = []
  return {
    out: data => void out.push(typeof data === 'string' ? data : new TextDecoder().decode(data)),
    err: text => void err.push(text),
    readFile: async path => {
      const text = files[path]
      if (text === undefined) throw new Error(`cannot read ${path}: there is no such file`)
      return new TextEncoder().encode(text)
    },
    listDirectory: async path => {
      const root = `${path.replace(/\/+$/, '')}/`
      const below = Object.keys(files).filter(one => one.startsWith(root))
      return [...new Set(below.map(one => one.slice(root.length).replace(/\/.*$/, '/')))].toSorted()
    },
    env: {},
    now: () => 0,
    isTerminal: false,
    hasColour: false,
    random: size => new Uint8Array(size),
    files: {
      read: async () => undefined,
      write: async path => Promise.reject(new Error(`cannot write ${path}`)),
      make: async path => Promise.reject(new Error(`cannot write ${path}`)),
      makeDirectory: async path => Promise.reject(new Error(`cannot write ${path}`)),
      removeDirectory: async () => true,
      remove: async () => {},
      removeAll: async () => {},
      locked: async (_, work) => work(),
      find: async () => undefined,
    },
    keychain: async () => undefined,
    start: () => ({ ended: Promise.resolve(0), kill: () => {} }),
    runToEnd: () => {},
    program: ['platform'],
    ...over,
    printed: () => out.join(''),
    said: () => err.join(''),
  }
}
