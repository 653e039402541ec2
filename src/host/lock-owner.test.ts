// Who held a lock is taken for gone where that is certain, and nowhere else.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { holderText, isGone } from './lock-owner.ts'

const change = (text: string, fields: object) => JSON.stringify({ ...JSON.parse(text), ...fields })

test('this very process holds what it has written, and it is whole: host, number, start', () => {
  const text = holderText()
  assert.deepEqual(Object.keys(JSON.parse(text)), ['host', 'pid', 'started'])
  assert.equal(JSON.parse(text).pid, process.pid)
  assert.match(JSON.parse(text).host, /^\S+ [0-9a-f-]{36} pid:\[\d+\]$/)
  assert.equal(isGone(text), false)
})

test('one that was killed is gone, and before that it is not', async () => {
  const child = spawn('sleep', ['600'])
  await once(child, 'spawn')
  const text = holderText(child.pid)
  assert.equal(isGone(text), false)
  child.kill('SIGKILL')
  await once(child, 'exit')
  assert.equal(isGone(text), true)
})

test('one that was killed and that nobody has asked about yet is gone: its number is not free', async () => {
  const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'])
  try {
    const [chunk] = await once(parent.stdout, 'data')
    const pid = Number(String(chunk))
    const text = holderText(pid)
    assert.equal(isGone(text), false)
    process.kill(pid, 'SIGKILL')
    while (!/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')));
    assert.equal(isGone(text), true)
  } finally {
    parent.kill('SIGKILL')
  }
})

test('a number that another process has by now is known by its start', () => {
  assert.equal(isGone(change(holderText(), { started: '1' })), true)
})

test('of a process of another machine nothing is known, nor of one in a container, nor before the machine was started anew', () => {
  const gone = change(holderText(), { started: '1' })
  assert.equal(isGone(gone), true)
  const [name, boot, processes] = String(JSON.parse(gone).host).split(' ')
  for (const host of [
    `other ${boot} ${processes}`,
    `${name} other ${processes}`,
    `${name} ${boot} pid:[1]`,
    '',
    undefined,
  ])
    assert.equal(isGone(change(gone, { host })), false, host)
})

test('of what is no holder nothing is known: what kubectl leaves, half a line, a group of processes', () => {
  const text = holderText()
  for (const other of ['', text.slice(0, -3), 'null', '7', '[]', 'of another'])
    assert.equal(isGone(other), false, other)
  for (const pid of [0, -1, -process.pid, 1.5, '1', null])
    assert.equal(isGone(change(text, { pid })), false, String(pid))
})
