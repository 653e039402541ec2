// A truncated body over HTTP/2 is rejected, whatever the client declares: the first half creates nothing.

import assert from 'node:assert/strict'
import { constants } from 'node:http2'
import { after, before, describe, test } from 'node:test'
import { frame, headOf, openFrames } from '../support/http2-frames.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually, group, openWire } from '../support/wire.ts'

describe('half a body over HTTP/2', { timeout: 120_000 }, () => {
  let server: Server
  before(async () => {
    server = await startServer({ storage: 'memory' })
  })
  after(() => server.stop())

  const writesUnderWay = async () => {
    const { text } = await openWire(server)('/metrics')
    return Number(/^apiserver_current_inflight_requests\{request_kind="mutating"\} (\d+)/m.exec(text)?.[1])
  }

  for (const [how, code] of [
    ['cancelled', constants.NGHTTP2_CANCEL],
    ['reset without an error', constants.NGHTTP2_NO_ERROR],
  ] as const)
    test(`creates nothing: ${how}`, async () => {
      const socket = await openFrames(server.https)
      const head = headOf({
        ':method': 'POST',
        ':scheme': 'https',
        ':path': `${group}/teams`,
        ':authority': 'localhost',
        authorization: `Bearer ${server.adminKey}`,
        'content-type': 'application/yaml',
      })
      const body = Buffer.from(`metadata: {name: half-${code}}\nspec:\n  displayName: A\n`)
      socket.write(Buffer.concat([frame(1, 4, 1, head), frame(0, 0, 1, body)]))
      await eventually('its body is read', async () => (await writesUnderWay()) === 1)
      socket.write(frame(3, 0, 1, Buffer.from([0, 0, 0, code])))
      await eventually('it is over', async () => (await writesUnderWay()) === 0)
      assert.equal((await openWire(server)(`${group}/teams/half-${code}`)).code, 404)
      socket.destroy()
    })
})
