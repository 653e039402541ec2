import { startServer } from './support/server.ts'
import { openBare, openWire, group } from './support/wire.ts'
const server = await startServer({ storage: 'memory' })
const wire = openWire(server, 'http')
const teams = `${group}/teams`
await wire(teams, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"metadata":{"name":"there"}}' })
const head = (line: string, ...more: string[]) => [line, 'Host: localhost', `Authorization: Bearer ${server.adminKey}`, ...more, '', ''].join('\r\n')
const chunked = head(`POST ${teams} HTTP/1.1`, 'Content-Type: application/json', 'Transfer-Encoding: chunked')
const halves = ['GET /', `${head(`POST ${teams} HTTP/1.1`, 'Content-Type: application/json', 'Content-Length: 100')}{"metadata":`, head(`POST ${teams} HTTP/1.1`, 'Content-Type: application/json', 'Content-Length: 100'), `${chunked}5\r\n{"met`, `${chunked}zz\r\n`, `${head(`PATCH ${teams}/there HTTP/1.1`, 'Content-Type: application/merge-patch+json', 'Content-Length: 10')}{`, `${head(`DELETE ${teams}/there HTTP/1.1`, 'Content-Type: application/json', 'Content-Length: 10')}{`]
const late = <T>(p: Promise<T>, what: string) => Promise.race([p, new Promise<never>((_, no) => setTimeout(() => no(new Error('late: ' + what)), 4000))])
try {
  for (let round = 0; round < 150; round++)
    for (const how of ['end', 'resetAndDestroy'] as const) {
      const open = await Promise.all(halves.map(() => openBare(server.http)))
      for (const [at, { socket }] of open.entries()) socket.write(halves[at] ?? '')
      await wire(teams)
      for (const { socket } of open) socket[how]()
      await Promise.all(open.map((bare, at) => late(bare.ended(), `${round} ${how} ended ${at} destroyed=${bare.socket.destroyed} closed=${bare.socket.closed}`)))
    }
  console.log('inflight', /mutating"\} (\d+)/.exec((await wire('/metrics')).text)?.[1])
} catch (error) { console.log(String(error)); console.log(/mutating"\} (\d+)/.exec((await wire('/metrics')).text)?.[1]) }
await server.kill()
