// One program at a time, also where one was killed with the lock in its hands, and nobody waits without being told for what.

import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { utimesSync } from 'node:fs'
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { locked } from './file-lock.ts'
import { openFiles } from './files.ts'

const inDirectory = async (work: (path: string, directory: string) => Promise<void>) => {
  const directory = await mkdtemp(join(tmpdir(), 'platform-lock-'))
  try {
    await work(join(directory, 'contexts.json'), directory)
  } finally {
    await rm(directory, { recursive: true })
  }
}

const leaveBehind = async (lock: string) => {
  await writeFile(lock, '')
  await utimes(lock, 0, 0)
}

const oneAtATime = (leave: (lock: string) => Promise<void>) =>
  inDirectory(async (path, directory) => {
    const taker = new URL('../../test/support/lock-taker.ts', import.meta.url)
    const both = [fork(taker), fork(taker)]
    const said = async (child: ChildProcess) => (await once(child, 'message'))[0] as unknown
    const paths = Array.from({ length: 60 }, (_, round) => `${path}-${round}`)
    try {
      await Promise.all(both.map(said))
      for (const one of paths) await leave(`${one}.lock`)
      const alone = both.map(said)
      for (const child of both) child.send(paths)
      const all = paths.map(() => true)
      assert.deepEqual(await Promise.all(alone), [all, all])
      assert.deepEqual(await readdir(directory), [], 'nothing is left behind')
    } finally {
      for (const child of both) child.kill('SIGKILL')
    }
  })

test('of two programs that find a lock left behind, one at a time goes on', () => oneAtATime(leaveBehind))

test('a lock that is touched is held, whatever the time is that it is touched with: clocks jump', async () => {
  await inDirectory(async path => {
    const lock = `${path}.lock`
    await leaveBehind(lock)
    let days = 0
    const touching = setInterval(() => utimesSync(lock, ++days * 86_400, days * 86_400), 10)
    const isTold = Promise.withResolvers<void>()
    let isInside = false
    const waiting = locked(
      path,
      async () => {
        isInside = true
      },
      { tell: () => isTold.resolve(), staleAfter: 1000, tellAfter: 2000 },
    )
    try {
      await Promise.race([isTold.promise, waiting])
      assert.equal(isInside, false)
    } finally {
      clearInterval(touching)
      await rm(lock, { force: true })
      await waiting
    }
    assert.equal(isInside, true)
  })
})

test('a lock of this very moment that nobody touches is left behind: it is waited for, and no longer', async () => {
  await inDirectory(async path => {
    await writeFile(`${path}.lock`, '')
    let looks = 0
    const tell = () => looks++
    assert.equal(await locked(path, async () => 'mine', { tell, staleAfter: 200, tellAfter: 50 }), 'mine')
    assert.equal(looks, 1)
  })
})

test('where whoever found a lock left behind was killed as well, the next one goes on all the same', async () => {
  await inDirectory(async (path, directory) => {
    const lock = `${path}.lock`
    await leaveBehind(lock)
    const { ino, mtimeNs } = await stat(lock, { bigint: true })
    await leaveBehind(`${lock}.${ino}-${mtimeNs}`)
    await locked(path, async () => {}, { tell: () => {}, staleAfter: 200 })
    assert.deepEqual(await readdir(directory), [])
  })
})

test('whoever waits is told for what, once, and goes on when it is done', async () => {
  await inDirectory(async path => {
    const said: string[] = []
    const isTold = Promise.withResolvers<void>()
    const inside = Promise.withResolvers<void>()
    const first = openFiles({}, () => assert.fail('the first one waits for nobody')).locked(path, async () => {
      inside.resolve()
      await isTold.promise
    })
    await inside.promise
    const files = openFiles({}, text => {
      said.push(text)
      isTold.resolve()
    })
    assert.equal(await files.locked(path, async () => 'mine'), 'mine')
    await first
    assert.deepEqual(said, [
      `platform: waiting for another program that changes ${path} and holds ${path}.lock; one that was killed is not waited for longer than 10 s\n`,
    ])
  })
})

test('a lock that is held for long is not taken for one that was left behind: it is touched', async () => {
  await inDirectory(async path => {
    await locked(
      path,
      async () => {
        await utimes(`${path}.lock`, 0, 0)
        while ((await stat(`${path}.lock`)).mtimeMs === 0);
      },
      { tell: () => {}, touchEvery: 1 },
    )
  })
})

test('a lock that another took over meanwhile is left to them', async () => {
  await inDirectory(async (path, directory) => {
    const lock = `${path}.lock`
    await openFiles({}, () => {}).locked(path, async () => {
      await rm(lock)
      await writeFile(lock, 'of another')
    })
    assert.deepEqual(await readdir(directory), ['contexts.json.lock'])
  })
})
