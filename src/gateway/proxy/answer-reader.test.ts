// Answers of clusters as bytes, whole and in every way they can be cut, and those that can be read in two ways.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadAnswer, openAnswerReader } from './answer-reader.ts'

type Read = { status: number; headers: readonly string[]; body: string; end: boolean | undefined }

function read(text: string, { size = text.length, method = 'GET', closes = false } = {}): Read {
  const found: Read = { status: 0, headers: [], body: '', end: undefined }
  const reader = openAnswerReader(method, {
    head: ({ status, rawHeaders }) => void Object.assign(found, { status, headers: rawHeaders }),
    data: chunk => {
      found.body += chunk.toString('latin1')
    },
    end: isReusable => {
      assert.equal(found.end, undefined, 'it ends once')
      found.end = isReusable
    },
  })
  const bytes = Buffer.from(text, 'latin1')
  for (let at = 0; at < bytes.length; at += size) reader.take(bytes.subarray(at, at + size))
  if (closes) assert.equal(reader.close(), found.end !== undefined)
  return found
}
const lines = (...all: string[]) => all.join('\r\n')

test('an answer is the same however its bytes arrive', () => {
  const cases: [string, string][] = [
    [lines('HTTP/1.1 200 OK', 'A: b', 'Content-Length: 5', '', 'hello'), 'hello'],
    [
      lines('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', '5', 'hello', '6;x=y', ' world', '0', '', ''),
      'hello world',
    ],
    [lines('HTTP/1.1 200 OK', 'Transfer-Encoding: Chunked', '', '1', 'a', '0', 'T: u', '', ''), 'a'],
    [lines('HTTP/1.1 100 Continue', '', 'HTTP/1.1 200 OK', 'Content-Length: 1', '', 'x'), 'x'],
    [lines('HTTP/1.1 204 No Content', '', ''), ''],
    [lines('HTTP/1.1 200', 'Content-Length: 0', '', ''), ''],
  ]
  for (const [text, body] of cases)
    for (const size of [1, 2, 3, 7, 1000]) {
      const found = read(text, { size })
      assert.deepEqual([found.body, found.end], [body, true], JSON.stringify(text))
    }
  assert.deepEqual(read(cases[0]?.[0] ?? '').headers, ['A', 'b', 'Content-Length', '5'])
})

test('what has no length ends with the connection; half an answer does not', () => {
  const open = lines('HTTP/1.1 200 OK', '', 'until the end')
  assert.deepEqual([read(open).end, read(open, { closes: true }).end], [undefined, false])
  for (const half of [
    lines('HTTP/1.1 200 OK', 'Content-Length: 9', '', 'half'),
    lines('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', '4', 'half', ''),
    'HTTP/1.1 200 OK\r\nA:',
  ])
    assert.equal(read(half, { closes: true }).end, undefined)
})

test('answers to HEAD, and 204 and 304, have no body whatever they say', () => {
  const head = lines('HTTP/1.1 200 OK', 'Content-Length: 50', '', '')
  assert.deepEqual([read(head, { method: 'HEAD' }).end, read(head).end], [true, undefined])
  assert.equal(read(lines('HTTP/1.1 304 Not Modified', 'Content-Length: 50', '', '')).end, true)
})

test('a connection is not used again where more came than was asked for, it says so, or it is old', () => {
  for (const text of [
    lines('HTTP/1.1 200 OK', 'Content-Length: 1', '', 'xHTTP/1.1 200 OK'),
    lines('HTTP/1.1 200 OK', 'Connection: keep-alive, Close', 'Content-Length: 1', '', 'x'),
    lines('HTTP/1.0 200 OK', 'Content-Length: 1', '', 'x'),
    lines('HTTP/1.1 204 No Content', 'Content-Length: 3', '', 'abc'),
  ])
    assert.equal(read(text).end, false, text)
})

test('what can be read in two ways is refused', () => {
  const head = (...more: string[]) => lines('HTTP/1.1 200 OK', ...more, '', '')
  for (const text of [
    head('Content-Length: 1', 'Content-Length: 1'),
    head('Content-Length: 1, 1'),
    head('Content-Length: +1'),
    head('Content-Length: 0x1'),
    head('Content-Length: '),
    head('Content-Length: 1', 'Transfer-Encoding: chunked'),
    head('Transfer-Encoding: gzip, chunked'),
    head('Transfer-Encoding: identity'),
    head('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'),
    head('A: b', ' folded'),
    head('A : b'),
    head(': b'),
    head('no colon'),
    head('A: b\nB: c'),
    head('A: b\x00'),
    `${head('Transfer-Encoding: chunked')}g\r\n`,
    `${head('Transfer-Encoding: chunked')}-1\r\n`,
    `${head('Transfer-Encoding: chunked')}1\r\nxy\r\n`,
    `${head('Transfer-Encoding: chunked')}1\r\nx\n0\r\n\r\n`,
    `${head('Transfer-Encoding: chunked')}${'0'.repeat(5000)}`,
    lines('HTTP/1.1 101 Switching Protocols', 'Upgrade: x', '', ''),
    lines('HTTP/2 200 OK', '', ''),
    lines('HTTP/1.1 20 OK', '', ''),
    lines('GET / HTTP/1.1', '', ''),
    `HTTP/1.1 200 OK\r\nA: ${'x'.repeat(70_000)}`,
  ])
    for (const size of [1, 1000])
      assert.throws(() => read(text, { size }), BadAnswer, JSON.stringify(text.slice(0, 99)))
})

test('blanks around a value are not part of it, and however many there are, an answer is read at once', () => {
  const value = (text: string) => read(lines('HTTP/1.1 200 OK', `X:${text}`, 'Content-Length: 0', '', '')).headers[1]
  assert.deepEqual([value(' \t a \t b\t '), value('a'), value(' \t'), value('')], ['a \t b', 'a', '', ''])
  const began = performance.now()
  for (const blanks of [' '.repeat(60_000), '\t'.repeat(60_000), ' \t'.repeat(30_000)]) {
    assert.equal(value(` a${blanks}b`), `a${blanks}b`)
    assert.equal(value(`${blanks}a${blanks.slice(0, 4000)}`), 'a')
    for (const bad of [`${blanks}\x01`, `a${blanks}\x01`, `\x01${blanks}`, `a${blanks}b\x7f`])
      assert.throws(() => value(bad), BadAnswer)
    assert.throws(() => read(lines('HTTP/1.1 200 OK', `X${blanks}: a`, '', '')), BadAnswer)
    assert.throws(() => read(lines('HTTP/1.1 200 OK', blanks, '', '')), BadAnswer)
    const closing = lines('HTTP/1.1 200 OK', `Connection: a,${blanks}x`, 'Content-Length: 0', '', '')
    assert.equal(read(closing).end, true)
  }
  const took = performance.now() - began
  assert.ok(took < 2000, `${took} ms`)
})
