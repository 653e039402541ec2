// Completion in real shells: bash, zsh and fish load the script that `platform completion` prints, and offer live names.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'
import { findDesktop, withDesktop } from '../support/desktop-tools.ts'
import { withTerminal } from '../support/terminal.ts'

// Before any test: what is fetched may take longer than the tests that are there already.
const desktop = await findDesktop()
const { home } = await signedIn({ storage: 'memory' })
before(async () => {
  await home.ok('create team web')
  await home.ok('create team worker')
  await home.ok('set secret db a=-', { stdin: 'x' })
})

test('bash completes commands, flags, their values and live names', async () => {
  // One shell for all lines: the script is loaded once, as people do.
  const offer = (...words: string[]) =>
    `COMP_WORDS=(platform ${words.map(word => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _platform; printf '%s,' "\${COMPREPLY[@]}"; echo`
  const lines = [
    offer('get', 'team', 'w'),
    offer('get', 'team', 'web', '-o', 'y'),
    offer('hist'),
    offer('get', 'team', '--no'),
  ]
  const script = ['source <(platform completion bash)', ...lines].join('\n')
  const { stdout, stderr } = await home.by(['bash', '-c', script])
  assert.deepEqual([stdout, stderr], ['web,worker,\nyaml,\nhistory,\n--no-headers,\n', ''])
})

withDesktop(desktop, 'fish', ({ tree, env }) => {
  test('fish completes commands, flags, their values and live names', async () => {
    const lines = ['get team w', 'get team web -o y', 'hist', 'get team --no']
    const script = ['platform completion fish | source', ...lines.map(line => `complete -C 'platform ${line}'; echo .`)]
    const command = [join(tree, 'usr/bin/fish'), '--no-config', '-c', script.join('\n')]
    const { stdout, stderr } = await home.by(command, { env })
    assert.deepEqual([stdout, stderr], ['web\nworker\n.\nyaml\n.\nhistory\n.\n--no-headers\n.\n', ''])
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
