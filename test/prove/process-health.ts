// The health of a server process: memory, open files, and responses, before and after a test.

import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { pidIn } from '../support/fiu.ts'
import type { Server } from '../support/server.ts'

export type Vitals = {
  /** In bytes. */
  resident(): number
  openFiles(): number
  /** Problems as text: not running, not responding, too much memory, files left open, uncaught errors. */
  problems(allowed: { readonly growth: number }): Promise<string[]>
}

export async function vitalsOf(server: Server): Promise<Vitals> {
  const pid = await pidIn(server.directory)
  const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  const openFiles = () => readdirSync(`/proc/${pid}/fd`).length
  const before = { resident: resident(), files: openFiles() }
  const said = server.output().length
  const isAlive = async () => {
    const answer = await server.request('GET', '/apis/management.platform.sh/v1/teams?limit=1').catch(() => undefined)
    return answer?.status === 200
  }
  return {
    resident,
    openFiles,
    async problems({ growth }) {
      if (!(await isAlive())) return ['it does not answer any more', server.output().slice(-2000)]
      const isClosed = () => openFiles() <= before.files + 20
      for (const end = Date.now() + 20_000; !isClosed() && Date.now() < end; ) await pause(50)
      const grown = resident() - before.resident
      const bugs =
        server
          .output()
          .slice(said)
          .match(/.*(unhandled|uncaught|a bug|"level":(50|60)).*/gi) ?? []
      return [
        ...(isClosed() ? [] : [`${openFiles()} open files, ${before.files} before`]),
        ...(grown > growth ? [`${Math.round(grown / 2 ** 20)} MiB more than before`] : []),
        ...bugs.slice(0, 5).map(line => line.slice(0, 500)),
      ]
    },
  }
}
