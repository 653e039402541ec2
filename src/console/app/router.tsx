// The addresses of the console. Filters, tabs and versions are in the URL; values never.

import { createRootRoute, createRoute, createRouter, lazyRouteComponent, useParams } from '@tanstack/react-router'
import type { Kind } from '../../api/kind.ts'
import { kindByPlural, kindNamed, listPath, shownKinds } from '../data/places.ts'
import { basePath } from '../data/server.ts'
import { ListPage } from '../pages/list.tsx'
import { text } from '../text/common.ts'
import { LinkButton } from '../ui/button.tsx'
import { State } from '../ui/parts.tsx'
import { SessionGate, SignedInPage } from './session.tsx'
import { Shell } from './shell.tsx'

const root = createRootRoute({
  component: () => (
    <SessionGate>
      <Shell />
    </SessionGate>
  ),
  notFoundComponent: NotFound,
  errorComponent: ({ error }) => (
    <State title={text.crashed} isPage>
      <p>{text.crashedAdvice}</p>
      <code>{String(error)}</code>
    </State>
  ),
})

function NotFound() {
  return (
    <State title={text.unknownPage} isPage>
      <LinkButton to="/">{text.backHome}</LinkButton>
    </State>
  )
}

const route = (path: string, component: () => React.ReactNode) =>
  createRoute({ getParentRoute: () => root, path, component })

const lazy = <N extends string>(
  path: string,
  load: () => Promise<{ readonly [name in N]: () => React.ReactNode }>,
  name: N,
) =>
  createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(load as () => Promise<Record<string, () => React.ReactNode>>, name),
  })

/** An object page loads on first use. */
const ObjectPage = lazyRouteComponent(() => import('../pages/object.tsx'), 'ObjectPage')
const CreatePage = lazyRouteComponent(() => import('../pages/create.tsx'), 'CreatePage')

const objectRoute = (path: string, find: (params: Params) => Found | undefined) =>
  ['', '/$tab'].map(end =>
    route(`${path}${end}`, () => {
      const params = useParams({ strict: false }) as Params
      const found = find(params)
      if (!found) return <NotFound />
      const { kind, namespace } = found
      const { name = '', tab = '' } = params
      // A page of its own for each object: a draft or a dialog of one must not appear on another.
      return (
        <ObjectPage key={`${kind.id} ${namespace}/${name}`} kind={kind} namespace={namespace} name={name} tab={tab} />
      )
    }),
  )

type Params = {
  readonly ns?: string
  readonly project?: string
  readonly name?: string
  readonly tab?: string
  readonly plural?: string
}
type Found = { readonly kind: Kind; readonly namespace: string }

const found = (kind: Kind | undefined, namespace = ''): Found | undefined => kind && { kind, namespace }
const own = shownKinds.filter(kind => !listPath(kind).startsWith('/kinds/'))

const tree = root.addChildren([
  lazy('/', () => import('../pages/home.tsx'), 'HomePage'),
  route('/signed-in', SignedInPage),
  ...own.map(kind => route(listPath(kind), () => <ListPage key={kind.id} kind={kind} />)),
  ...own.map(kind => route(`${listPath(kind)}/new`, () => <CreatePage key={kind.id} kind={kind} />)),
  ...objectRoute('/ns/$ns/secrets/$name', ({ ns }) => found(kindNamed('SharedSecret'), ns)),
  ...objectRoute('/ns/$ns/project-secrets/$name', ({ ns }) => found(kindNamed('ProjectSecret'), ns)),
  ...objectRoute('/projects/$project/secrets/$name', ({ project }) =>
    found(kindNamed('ProjectSecret'), `p-${project}`),
  ),
  ...own
    .filter(({ kind }) => kind !== 'SharedSecret' && kind !== 'ProjectSecret')
    .flatMap(kind =>
      objectRoute(`${listPath(kind)}${kind.namespaced ? '/$ns' : ''}/$name`, ({ ns }) => found(kind, ns)),
    ),
  route('/kinds/$plural', () => {
    const kind = kindByPlural((useParams({ strict: false }) as Params).plural ?? '')
    return kind ? <ListPage key={kind.id} kind={kind} /> : <NotFound />
  }),
  route('/kinds/$plural/new', () => {
    const kind = kindByPlural((useParams({ strict: false }) as Params).plural ?? '')
    return kind ? <CreatePage key={kind.id} kind={kind} /> : <NotFound />
  }),
  ...objectRoute('/kinds/$plural/$name', ({ plural = '' }) => found(kindByPlural(plural))),
  lazy('/access/why', () => import('../pages/why.tsx'), 'WhyPage'),
  lazy('/tokens/new', () => import('../pages/token.tsx'), 'TokenPage'),
  lazy('/audit', () => import('../pages/audit.tsx'), 'AuditPage'),
  lazy('/patches', () => import('../pages/patches.tsx'), 'PatchesPage'),
])

export const router = createRouter({
  routeTree: tree,
  basepath: basePath,
  // Every parameter is a string. The default reads JSON, so a link could pass any value to a page.
  parseSearch: search => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch: search => {
    const filled = Object.entries(search).filter(([, value]) => value !== undefined)
    return filled.length ? `?${new URLSearchParams(filled as [string, string][])}` : ''
  },
  defaultPreload: false,
  scrollRestoration: true,
})
