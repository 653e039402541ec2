// Boots the systemd of this machine in namespaces, over a copy of its root directory in memory, to run units under it.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { exec, type Output } from './exec.ts'

const init = '/lib/systemd/systemd'

export type SystemdMachine = {
  /** Runs a program in it. */
  exec(file: string, ...args: string[]): Promise<Output>
  /** The same; it must succeed. Returns the output. */
  run(file: string, ...args: string[]): Promise<string>
  close(): Promise<void>
}

export const canBootSystemd = () => process.getuid?.() === 0 && existsSync(init)

/** Its own cgroup; the name is in the first argument. Without the processes of this machine, systemd cannot move them. */
const outer = `
mount -t cgroup2 none /sys/fs/cgroup || exit 1
own=/sys/fs/cgroup/$1
mkdir $own && sh -c "echo \\$\\$ > $own/cgroup.procs; exec unshare --cgroup --pid --fork --uts --ipc --mount --kill-child sh '$2'"
find $own -depth -type d -exec rmdir {} ';'
`

/** PID 1 until systemd replaces it. Its settings of the kernel would apply to this machine, so they are read-only. */
const inner = (directory: string, install: string) => `set -e
R=${directory}/root
mount -t tmpfs tmpfs ${directory}
mkdir ${directory}/upper ${directory}/work $R
mount -t overlay overlay -o lowerdir=/,upperdir=${directory}/upper,workdir=${directory}/work $R
mount -t proc proc $R/proc
mount --bind $R/proc/sys $R/proc/sys
mount -o remount,bind,ro $R/proc/sys
mount -t sysfs -o ro sysfs $R/sys
mount -t cgroup2 none $R/sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs $R/dev
for name in null zero full random urandom tty; do touch $R/dev/$name; mount --bind /dev/$name $R/dev/$name; done
mkdir $R/dev/pts $R/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts $R/dev/pts
ln -s pts/ptmx $R/dev/ptmx
ln -s /proc/self/fd $R/dev/fd
mount -t tmpfs -o mode=755 tmpfs $R/run
rm -rf $R/etc/systemd/system
mkdir -p $R/etc/systemd/system
${install}
mount -t tmpfs -o mode=1777 tmpfs $R/tmp
cd $R
mkdir -p previous
pivot_root . previous
cd /
umount -l /previous
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin ${init} --system --unit=basic.target --log-target=null --show-status=no
`

/** `install`: commands of sh before the start, with the root directory in $R. */
export async function bootSystemd(install: string): Promise<SystemdMachine> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-machine-'))
  const script = join(directory, 'boot.sh')
  const mounted = mkdtempSync(join(tmpdir(), 'platform-machine-root-'))
  writeFileSync(script, inner(mounted, install))
  const own = `platform-test-${process.pid}`
  const args = ['--mount', '--propagation', 'private', 'sh', '-c', outer, 'sh', own, script]
  const child = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', chunk => {
      output += chunk
    })
  const ended = once(child, 'close')
  const leave = () => {
    const pid = pidOf(child)
    if (pid) process.kill(pid, 'SIGKILL')
  }
  process.once('exit', leave)
  const enter = (file: string, ...rest: string[]) => {
    const pid = pidOf(child)
    assert.ok(pid, `systemd is not running:\n${output}`)
    const all = ['--mount', '--pid', '--uts', '--ipc', '--cgroup', '--root', '--wd']
    return exec('nsenter', ['--target', String(pid), ...all, file, ...rest], {
      env: { PATH: '/usr/bin:/usr/sbin:/bin' },
    })
  }
  while (!pidOf(child) || (await enter('systemctl', 'is-active', 'basic.target')).stdout !== 'active\n') {
    assert.equal(child.exitCode, null, `systemd did not start:\n${output}`)
    await pause(200)
  }
  return {
    exec: enter,
    run: async (file, ...rest) => {
      const { code, stdout, stderr } = await enter(file, ...rest)
      assert.equal(code, 0, `${file} ${rest.join(' ')}:\n${stdout}${stderr}`)
      return stdout
    },
    close: async () => {
      leave()
      await ended
      process.off('exit', leave)
      for (const one of [directory, mounted]) rmSync(one, { recursive: true, force: true })
    },
  }
}

/** The child of the child of the child: PID 1 of the namespace, once it is systemd. */
function pidOf({ pid }: ChildProcess): number | undefined {
  let current = pid
  for (let depth = 0; current && depth < 4; depth++) {
    if (nameOf(current) === 'systemd') return current
    current = childOf(current)
  }
  return undefined
}

const nameOf = (pid: number) => readOrEmpty(`/proc/${pid}/comm`).trim()
const childOf = (pid: number) => Number(readOrEmpty(`/proc/${pid}/task/${pid}/children`).split(' ')[0]) || undefined

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
