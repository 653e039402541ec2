// Lock files: mutual exclusion, stale locks of killed programs, and messages for waiting programs.

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

const makeStale = async (lock: string) => {
  await writeFile(lock, '')
  await utimes(lock, 0, 0)
}

const oneAtATime = (leave: (lock: string) => Promise<void>) =>
  inDirectory(async (path, directory) => {
    const taker = new URL('../../test/support/lock-process.ts', import.meta.url)
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
      assert.deepEqual(await readdir(directory), [], 'no files remain')
    } finally {
      for (const child of both) child.kill('SIGKILL')
    }
  })

test('two programs that find a stale lock acquire it one after the other', () => oneAtATime(makeStale))

test('a lock that is touched is not stale, whatever time it is touched with', async () => {
  await inDirectory(async path => {
    const lock = `${path}.lock`
    await makeStale(lock)
    let days = 0
    const touching = setInterval(() => utimesSync(lock, ++days * 86_400, days * 86_400), 10)
    const notified = Promise.withResolvers<void>()
    let isInside = false
    const waiting = locked(
      path,
      async () => {
        isInside = true
      },
      { notify: () => notified.resolve(), staleAfter: 1000, notifyAfter: 2000 },
    )
    try {
      await Promise.race([notified.promise, waiting])
      assert.equal(isInside, false)
    } finally {
      clearInterval(touching)
      await rm(lock, { force: true })
      await waiting
    }
    assert.equal(isInside, true)
  })
})

test('a new lock that is never touched becomes stale after the wait', async () => {
  await inDirectory(async path => {
    await writeFile(`${path}.lock`, '')
    let messages = 0
    const notify = () => messages++
    assert.equal(await locked(path, async () => 'mine', { notify, staleAfter: 200, notifyAfter: 50 }), 'mine')
    assert.equal(messages, 1)
  })
})

test('a program killed while it removed a stale lock does not block the next one', async () => {
  await inDirectory(async (path, directory) => {
    const lock = `${path}.lock`
    await makeStale(lock)
    const { ino, mtimeNs } = await stat(lock, { bigint: true })
    await makeStale(`${lock}.${ino}-${mtimeNs}`)
    await locked(path, async () => {}, { notify: () => {}, staleAfter: 200 })
    assert.deepEqual(await readdir(directory), [])
  })
})

test('a waiting program prints one message and continues when the lock is released', async () => {
  await inDirectory(async path => {
    const said: string[] = []
    const notified = Promise.withResolvers<void>()
    const inside = Promise.withResolvers<void>()
    const first = openFiles({}, () => assert.fail('the first program must not wait')).locked(path, async () => {
      inside.resolve()
      await notified.promise
    })
    await inside.promise
    const files = openFiles({}, text => {
      said.push(text)
      notified.resolve()
    })
    assert.equal(await files.locked(path, async () => 'mine'), 'mine')
    await first
    assert.deepEqual(said, [
      `platform: waiting for another program to release ${path}.lock; a stale lock expires after 10 s\n`,
    ])
  })
})

test('a lock that is held for long is touched, so that it does not become stale', async () => {
  await inDirectory(async path => {
    await locked(
      path,
      async () => {
        await utimes(`${path}.lock`, 0, 0)
        while ((await stat(`${path}.lock`)).mtimeMs === 0);
      },
      { notify: () => {}, touchEvery: 1 },
    )
  })
})

test('release does not remove a lock that another program has taken over', async () => {
  await inDirectory(async (path, directory) => {
    const lock = `${path}.lock`
    await openFiles({}, () => {}).locked(path, async () => {
      await rm(lock)
      await writeFile(lock, 'of another')
    })
    assert.deepEqual(await readdir(directory), ['contexts.json.lock'])
  })
})
