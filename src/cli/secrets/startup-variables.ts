// Environment variables that change how programs start. An author of a secret could use them to run code in its consumer.
// `platform run` exports them only if the consumer maps them by name, and shell exports never do. docs/CLI.md publishes the list.

/** By the program that reads them. A name that ends in * is a prefix. */
export const startupVariables: { readonly [reader: string]: readonly string[] } = {
  'loader and C library': [
    'LD_*',
    'DYLD_*',
    'GLIBC_TUNABLES',
    'GCONV_PATH',
    'GETCONF_DIR',
    'HOSTALIASES',
    'LOCALDOMAIN',
    'LOCPATH',
    'MALLOC_*',
    'NLSPATH',
    'RES_OPTIONS',
    'RESOLV_*',
    'TERMINFO*',
    'TMPDIR',
    'TZDIR',
  ],
  shells: [
    'PATH',
    'HOME',
    'SHELL',
    'ENV',
    'BASH_ENV',
    'BASH_FUNC_*',
    'BASHOPTS',
    'SHELLOPTS',
    'CDPATH',
    'IFS',
    'GLOBIGNORE',
    'PROMPT_COMMAND',
    'PS0',
    'PS1',
    'PS2',
    'PS4',
    'PROMPT',
    'RPROMPT',
    'NULLCMD',
    'READNULLCMD',
    'FCEDIT',
    'INPUTRC',
    'ZDOTDIR',
    'path',
    'fpath',
  ],
  'Node.js, npm, pnpm, Yarn and Bun': [
    'NODE_OPTIONS',
    'NODE_PATH',
    'NODE_REPL_EXTERNAL_MODULE',
    'NPM_CONFIG_*',
    'PNPM_CONFIG_*',
    'YARN_*',
    'BUN_*',
  ],
  Python: ['PYTHON*'],
  Ruby: ['RUBYOPT', 'RUBYLIB', 'GEM_HOME', 'GEM_PATH', 'BUNDLE_*'],
  Perl: ['PERL*'],
  PHP: ['PHPRC', 'PHP_INI_SCAN_DIR'],
  Lua: ['LUA_*'],
  Java: ['JAVA_*', '_JAVA_OPTIONS', 'JDK_JAVA_OPTIONS', 'CLASSPATH', 'MAVEN_*', 'GRADLE_*'],
  '.NET': ['DOTNET_*', 'COMPlus_*', 'CORECLR_*', 'COR_*'],
  Go: ['GODEBUG', 'GOFLAGS', 'GOROOT'],
  Rust: ['CARGO_*', 'RUSTC*', 'RUSTFLAGS'],
  make: ['MAKEFLAGS', 'MAKEFILES', 'GNUMAKEFLAGS'],
  'Erlang and Elixir': ['ERL_*', 'ELIXIR_*'],
  'Git and SSH': ['GIT_*', 'SSH_ASKPASS*', 'SSH_AUTH_SOCK'],
  'pagers and editors': [
    'EDITOR',
    'VISUAL',
    'PAGER',
    'MANPAGER',
    'LESS*',
    'BROWSER',
    'VIMINIT',
    'EXINIT',
    'PSQL_EDITOR',
    'PSQL_PAGER',
    'AWS_PAGER',
  ],
  OpenSSL: ['OPENSSL_*'],
  'desktop libraries': ['GTK_*', 'QT_*', 'GIO_*'],
  'kubectl and platform': ['KUBECONFIG', 'KUBE_EDITOR', 'KUBECTL_*', 'PLATFORM_*'],
}

const all = Object.values(startupVariables).flat()
const names = new Set(all.filter(one => !one.endsWith('*')))
const prefixes = all.filter(one => one.endsWith('*')).map(one => one.slice(0, -1))

/** npm and its relatives read their variables in any case. */
const inAnyCase = /^(p?npm_config|yarn)_/i

export const changesStart = (variable: string): boolean =>
  names.has(variable) || inAnyCase.test(variable) || prefixes.some(one => variable.startsWith(one))
