// Completion in real shells: bash, zsh and fish load the script that `platform completion` prints, and offer live names.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { findDesktop, withDesktop } from '../support/desktop.ts'
import { type Server, startServer } from '../support/server.ts'
import { withTerminal } from '../support/terminal.ts'

// Before any test: what is fetched may take longer than the tests that are there already.
const desktop = await findDesktop()
let server: Server
let home: CliHome
before(async () => {
  server = await startServer({ storage: 'memory' })
  home = await openHome()
  await home.signIn(server)
  await home.ok('create team web')
  await home.ok('create team worker')
  await home.ok('set secret db a=-', { stdin: 'x' })
})
after(async () => {
  await home.close()
  await server.stop()
})

test('bash completes commands, flags, their values and live names', async () => {
  const offered = async (...words: string[]) => {
    const quoted = words.map(word => `'${word}'`).join(' ')
    const script = `source <(platform completion bash); COMP_WORDS=(platform ${quoted}); COMP_CWORD=${words.length}; _platform; printf '%s,' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = await home.by(['bash', '-c', script])
    assert.equal(stderr, '')
    return stdout
  }
  assert.equal(await offered('get', 'team', 'w'), 'web,worker,')
  assert.equal(await offered('get', 'team', 'web', '-o', 'y'), 'yaml,')
  assert.equal(await offered('hist'), 'history,')
  assert.equal(await offered('get', 'team', '--no'), '--no-headers,')
})

withDesktop(desktop, 'fish', ({ tree, env }) => {
  test('fish completes commands, flags, their values and live names', async () => {
    const offered = async (line: string) => {
      const script = `platform completion fish | source; complete -C '${line}'`
      const { stdout, stderr } = await home.by([join(tree, 'usr/bin/fish'), '--no-config', '-c', script], { env })
      assert.equal(stderr, '')
      return stdout
    }
    assert.equal(await offered('platform get team w'), 'web\nworker\n')
    assert.equal(await offered('platform get team web -o y'), 'yaml\n')
    assert.equal(await offered('platform hist'), 'history\n')
    assert.equal(await offered('platform get team --no'), '--no-headers\n')
  })
})

await withTerminal(() =>
  withDesktop(desktop, 'zsh', ({ tree, env }) => {
    test('zsh completes commands, flags and live names when Tab is pressed', async () => {
      // Ctrl-X shows the line as it is then, without what a terminal needs to draw it.
      const start = `module_path=(${tree}/usr/lib/*/zsh/*(N)); fpath=(${tree}/usr/share/zsh/functions/**/*(/N)); PROMPT='ready> '
autoload -Uz compinit; compinit -u -D; source <(platform completion zsh); setopt no_beep
shown() { zle -M "<$BUFFER>" }; zle -N shown; bindkey '^X' shown\n`
      writeFileSync(join(home.directory, '.zshrc'), start)
      const zsh = home.terminalBy([join(tree, 'bin/zsh'), '-i'], { env: { ...env, ZDOTDIR: home.directory } })
      await zsh.sees(/ready> /)
      for (const [typed, completed] of [
        ['platform hist\t', '<platform history >'],
        ['sec\t', '<platform history secret >'],
        ['d\t', '<platform history secret db >'],
        ['--no-h\t', '<platform history secret db --no-headers >'],
        ['\x15platform get team wo\t', '<platform get team worker >'],
      ] as const) {
        zsh.type(`${typed}\x18`)
        assert.ok((await zsh.sees(/<.*>/)).includes(completed), completed)
      }
      zsh.type('\x15exit\r')
      await zsh.ended
    })
  }),
)
