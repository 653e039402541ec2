// Environment variables that change how programs start. An author of a secret could use them to run code in its consumer.
// `platform run` exports them only if the consumer maps them by name. docs/CLI.md publishes the list.

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
    'PS4',
    'ZDOTDIR',
  ],
  'Node.js and npm': ['NODE_OPTIONS', 'NODE_PATH', 'NODE_REPL_EXTERNAL_MODULE', 'NPM_CONFIG_*', 'npm_config_*'],
  Python: ['PYTHON*'],
  Ruby: ['RUBYOPT', 'RUBYLIB', 'GEM_HOME', 'GEM_PATH', 'BUNDLE_*'],
  Perl: ['PERL*'],
  PHP: ['PHPRC', 'PHP_INI_SCAN_DIR'],
  Lua: ['LUA_*'],
  Java: ['JAVA_*', '_JAVA_OPTIONS', 'JDK_JAVA_OPTIONS', 'CLASSPATH', 'MAVEN_*', 'GRADLE_*'],
  '.NET': ['DOTNET_*', 'COMPlus_*', 'CORECLR_*', 'COR_*'],
  Go: ['GODEBUG', 'GOFLAGS', 'GOROOT'],
  Rust: ['CARGO_*', 'RUSTC*', 'RUSTFLAGS'],
  make: ['MAKEFLAGS', 'MAKEFILES'],
  'Git and SSH': ['GIT_*', 'SSH_ASKPASS*', 'SSH_AUTH_SOCK'],
  'pagers and editors': ['EDITOR', 'VISUAL', 'PAGER', 'MANPAGER', 'LESS*', 'BROWSER'],
  OpenSSL: ['OPENSSL_*'],
  'desktop libraries': ['GTK_*', 'QT_*', 'GIO_*'],
  'kubectl and platform': ['KUBECONFIG', 'PLATFORM_*'],
}

const all = Object.values(startupVariables).flat()
const names = new Set(all.filter(one => !one.endsWith('*')))
const prefixes = all.filter(one => one.endsWith('*')).map(one => one.slice(0, -1))

export const changesStart = (variable: string): boolean =>
  names.has(variable) || prefixes.some(one => variable.startsWith(one))
