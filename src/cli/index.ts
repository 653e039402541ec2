// Table of client commands by subject, in the order of the help.

import type { Command, Row } from '../host/command.ts'

const row = <K extends string>(words: string, from: () => Promise<{ readonly [key in K]: Command }>, name: K): Row => ({
  words: words.split(' '),
  load: async () => (await from())[name],
})

const contexts = () => import('./login/logout.ts')
const identity = () => import('./login/whoami.ts')
const forKubectl = () => import('./login/kubeconfig.ts')
const objects = () => import('./get.ts')
const tokens = () => import('./keys/token.ts')
const changes = () => import('./secrets/set.ts')
const versions = () => import('./secrets/history.ts')
const secretFiles = () => import('./secrets/import-export.ts')
const newKeys = () => import('./keys/access-keys.ts')
const keys = () => import('./keys/access-key-lifecycle.ts')
const teams = () => import('./teams/teams.ts')
const questions = () => import('./access/can-i.ts')
const vclusterFiles = () => import('./vcluster/config.ts')
const previews = () => import('./vcluster/patch.ts')
const licenses = () => import('./vcluster/license.ts')

const about = (subject: string, rows: readonly Row[]): readonly Row[] => rows.map(one => ({ ...one, subject }))

export const commands: readonly Row[] = [
  ...about('Sign-in and contexts', [
    row('login', () => import('./login/login.ts'), 'login'),
    row('logout', contexts, 'logout'),
    row('whoami', identity, 'whoami'),
    row('status', identity, 'status'),
    row('context use', contexts, 'contextUse'),
    row('context list', contexts, 'contextList'),
    row('context delete', contexts, 'contextDelete'),
    row('kubeconfig', forKubectl, 'kubeconfig'),
    row('credential', forKubectl, 'credential'),
    row('kubectl', forKubectl, 'kubectl'),
  ]),
  ...about('Global secrets and project secrets', [
    row('run', () => import('./secrets/run.ts'), 'run'),
    row('get secret', () => import('./secrets/get.ts'), 'getSecret'),
    row('set secret', changes, 'setSecret'),
    row('unset secret', changes, 'unsetSecret'),
    row('list secrets', () => import('./secrets/list.ts'), 'listSecrets'),
    row('share secret', () => import('./secrets/share.ts'), 'shareSecret'),
    row('import secret', secretFiles, 'importSecret'),
    row('export secret', secretFiles, 'exportSecret'),
    row('history secret', versions, 'historySecret'),
    row('diff secret', versions, 'diffSecret'),
    row('rollback secret', versions, 'rollbackSecret'),
  ]),
  ...about('Teams', [
    row('create team', teams, 'createTeam'),
    row('team add-user', teams, 'addUser'),
    row('team remove-user', teams, 'removeUser'),
    row('team add-group', teams, 'addGroup'),
    row('team remove-group', teams, 'removeGroup'),
  ]),
  ...about('Users', [
    row('link user', () => import('./users/link.ts'), 'linkUser'),
    row('offboard', () => import('./users/offboard.ts'), 'offboard'),
    row('enable user', () => import('./users/enable.ts'), 'enableUser'),
  ]),
  ...about('Access keys and tokens', [
    row('create accesskey', newKeys, 'createAccessKey'),
    row('list accesskeys', keys, 'listAccessKeys'),
    row('rotate accesskey', keys, 'rotateAccessKey'),
    row('disable accesskey', keys, 'disableAccessKey'),
    row('enable accesskey', keys, 'enableAccessKey'),
    row('create token', newKeys, 'createToken'),
    row('token revoke', tokens, 'tokenRevoke'),
    row('token rotate-key', tokens, 'tokenRotateKey'),
  ]),
  ...about('Connected clusters', [
    row('connect cluster', () => import('./clusters/connect.ts'), 'connectCluster'),
    row('disconnect cluster', () => import('./clusters/disconnect.ts'), 'disconnectCluster'),
    row('token', () => import('./clusters/cluster-token.ts'), 'clusterToken'),
  ]),
  ...about('Permissions', [
    row('can-i', questions, 'canI'),
    row('why', questions, 'why'),
    row('who-can', questions, 'whoCan'),
    row('auth explain-token', () => import('./access/explain-token.ts'), 'explainToken'),
    row('audit search', () => import('./audit/search.ts'), 'auditSearch'),
  ]),
  ...about('Objects of any kind', [
    row('get', objects, 'get'),
    row('list', objects, 'list'),
    row('create', () => import('./create.ts'), 'create'),
    row('delete', () => import('./delete.ts'), 'remove'),
  ]),
  ...about('Virtual clusters', [
    row('vcluster validate', vclusterFiles, 'vclusterValidate'),
    row('vcluster patch', previews, 'vclusterPatch'),
    row('vcluster preview', previews, 'vclusterPreview'),
    row('vcluster test', () => import('./vcluster/test-cases.ts'), 'vclusterTest'),
    row('vcluster schema', vclusterFiles, 'vclusterSchema'),
    row('vcluster defaults', vclusterFiles, 'vclusterDefaults'),
    row('license inspect', licenses, 'licenseInspect'),
    row('license keygen', licenses, 'licenseKeygen'),
    row('license issue', licenses, 'licenseIssue'),
  ]),
  ...about('This program', [row('completion', () => import('./complete.ts'), 'completion')]),
]
