// Where a gateway listens after a change of its file that was not used after all.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../test/support/wire.ts'
import { listenHttp } from '../serving/listener.ts'
import { openDoors } from './gateway-doors.ts'

test('an address that was taken in use is left again where something else cannot be used', async () => {
  const listen = () => listenHttp({ host: '127.0.0.1', port: 0 }, (_, response) => void response.end('here'))
  const doors = await openDoors({ listen: 'a' }, { file: '', listen, listenStatus: listen, info: () => {} })
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

test('an address that is in use is told with its setting', async t => {
  const here = await listenHttp({ host: '127.0.0.1', port: 0 }, () => {})
  t.after(() => here.close(0))
  const port = Number(new URL(here.url).port)
  const listen = () => listenHttp({ host: '127.0.0.1', port: 0 }, () => {})
  const taken = () => listenHttp({ host: '127.0.0.1', port }, () => {})
  const says = (setting: string) => ({
    message: `gateway.yaml: ${setting}: 127.0.0.1:${port} is in use by another program; choose another address with ${setting}: HOST:PORT`,
  })
  const options = { file: 'gateway.yaml', listen, listenStatus: taken, info: () => {} }
  const address = `127.0.0.1:${port}`
  await assert.rejects(openDoors({ listen: address }, { ...options, listen: taken }), says('listen'))
  const doors = await openDoors({ listen: 'a' }, options)
  t.after(() => doors.close(0))
  await assert.rejects(doors.prepare({ listen: 'a', status: address }), says('status'))
})
