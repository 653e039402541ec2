// The loopback port of a sign-in: the first valid callback wins, and a browser that leaves does not block it.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { listenForCallback } from './loopback-callback.ts'

const state = 'a-state'

test('only the first callback is taken, and it learns the result', async () => {
  const { port, received, close } = await listenForCallback(state)
  try {
    const url = `http://127.0.0.1:${port}/callback?code=one&state=${state}`
    const first = fetch(url)
    const { code, answer } = await received
    assert.equal(code, 'one')
    assert.equal((await fetch(url)).status, 404)
    await answer(true)
    const page = await first
    assert.equal(page.status, 200)
    assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/)
    assert.match(await page.text(), /You are signed in/)
  } finally {
    close()
  }
})

test('a denial is a callback without a code', async () => {
  const { port, received, close } = await listenForCallback(state)
  try {
    const denied = (own: string) => fetch(`http://127.0.0.1:${port}/callback?error=access_denied&state=${own}`)
    assert.equal((await denied('other')).status, 404)
    const page = denied(state)
    const { code, answer } = await received
    assert.equal(code, undefined)
    await answer(false)
    assert.match(await (await page).text(), /The sign-in was cancelled/)
  } finally {
    close()
  }
})

test('a browser that is gone does not block the answer', async () => {
  const { port, received, close } = await listenForCallback(state)
  try {
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET /callback?code=one&state=${state} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
    const { answer, gone } = await received
    socket.destroy()
    await once(socket, 'close')
    await gone
    await answer(true)
  } finally {
    close()
  }
})
