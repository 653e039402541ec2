// The listeners of a gateway after a configuration change that was rolled back.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freePort } from '../../test/support/ports.ts'
import { eventually } from '../../test/support/wire.ts'
import { addressOf } from '../serving/address.ts'
import { listenHttp } from '../serving/listener.ts'
import { openListeners } from './listeners.ts'

test('a newly opened address is closed again if another part is unusable', async () => {
  const listen = () => listenHttp({ host: '127.0.0.1', port: 0 }, (_, response) => void response.end('here'))
  const doors = await openListeners({ listen: 'a' }, { file: '', listen, listenStatus: listen, info: () => {} })
  const before = doors.urls()
  const change = await doors.prepare({ listen: 'b', status: 'c' })
  change?.use()
  const opened = doors.urls().split(' ')
  assert.equal(opened.length, 2)
  change?.drop()
  assert.equal(doors.urls(), before)
  assert.equal(await (await fetch(before)).text(), 'here')
  for (const url of opened)
    await eventually(`${url} is left`, () =>
      fetch(url).then(
        () => false,
        () => true,
      ),
    )
  await doors.close(0)
})

test('an address that is in use is reported with its setting', async t => {
  const here = await listenHttp({ host: '127.0.0.1', port: 0 }, () => {})
  t.after(() => here.close(0))
  const port = Number(new URL(here.url).port)
  const listen = () => listenHttp({ host: '127.0.0.1', port: 0 }, () => {})
  const taken = () => listenHttp({ host: '127.0.0.1', port }, () => {})
  const says = (setting: string) => ({
    message: `gateway.yaml: ${setting}: cannot listen on 127.0.0.1:${port}: in use by another program; set ${setting} to another HOST:PORT`,
  })
  const options = { file: 'gateway.yaml', listen, listenStatus: taken, info: () => {} }
  const address = `127.0.0.1:${port}`
  await assert.rejects(openListeners({ listen: address }, { ...options, listen: taken }), says('listen'))
  const doors = await openListeners({ listen: 'a' }, options)
  t.after(() => doors.close(0))
  await assert.rejects(doors.prepare({ listen: 'a', status: address }), says('status'))
})

test('an address that the gateway itself uses under another name is reported as such; others with the reason', async t => {
  const listen = (address: string) => listenHttp(addressOf(address), () => {})
  const options = { file: 'gateway.yaml', listen, listenStatus: listen, info: () => {} }
  const port = await freePort()
  const [first, again] = [`127.0.0.1:${port}`, `127.1:${port}`]
  const own = new RegExp(
    `cannot listen on ${again}: in use by this gateway, which keeps ${first} open until it is restarted; set (listen|status) to another HOST:PORT`,
  )
  const doors = await openListeners({ listen: first }, options)
  t.after(() => doors.close(0))
  await assert.rejects(doors.prepare({ listen: again }), own)
  await assert.rejects(doors.prepare({ listen: first, status: again }), own)
  for (const [address, why] of [
    [
      '192.0.2.77:9443',
      /listen: cannot listen on 192\.0\.2\.77:9443: not an address of this machine; set listen to another/,
    ],
    [
      'nobody.invalid:9443',
      /listen: cannot listen on nobody\.invalid:9443: (unknown host name|the host name cannot be resolved at the moment); set listen/,
    ],
  ] as const)
    await assert.rejects(doors.prepare({ listen: address }), why)
})
