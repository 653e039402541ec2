// Tabs of a team: its members with the way they joined, and what the team may do.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Resource } from '../../api/object.ts'
import { server } from '../data/server.ts'
import { accessText } from '../text/access.tsx'
import { Card, ErrorState, Loading, State } from '../ui/parts.tsx'
import style from './secret-data.module.css'
import type { TabProps } from './tab.ts'
import { Value } from './value.tsx'

type Permissions = {
  readonly members?: readonly { readonly user: string; readonly via: string }[]
  readonly permissions?: readonly { readonly [field: string]: unknown }[]
}

function usePermissions({ kind, at, object }: TabProps) {
  return useQuery({
    queryKey: ['team-permissions', at.name, object.metadata.resourceVersion],
    queryFn: async () =>
      ((await server.get(kind, at, { subresource: 'permissions' })).object as Resource)
        .status as unknown as Permissions,
  })
}

export function TeamMembers(props: TabProps) {
  const { data, error, isPending } = usePermissions(props)
  if (isPending) return <Loading />
  if (error) return <ErrorState error={error} />
  const members = data.members ?? []
  if (members.length === 0) return <State title={accessText.noMembers}>{accessText.noMembersAdvice}</State>
  return (
    <Card title={accessText.members(members.length)}>
      <table className={style.table}>
        <thead>
          <tr>
            <th scope="col">{accessText.user}</th>
            <th scope="col">{accessText.joinedThrough}</th>
          </tr>
        </thead>
        <tbody>
          {members.map(({ user, via }) => (
            <tr key={`${user} ${via}`}>
              <td>
                <Link to={`/users/${encodeURIComponent(user)}`}>{user}</Link>
              </td>
              <td>
                <code>{via}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  )
}

export function TeamPermissions(props: TabProps) {
  const { data, error, isPending } = usePermissions(props)
  if (isPending) return <Loading />
  if (error) return <ErrorState error={error} />
  const permissions = data.permissions ?? []
  if (permissions.length === 0)
    return (
      <State title={accessText.noPermissions}>{accessText.noPermissionsAdvice(`platform:team:${props.at.name}`)}</State>
    )
  return (
    <Card title={accessText.teamMay}>
      <Value value={permissions as never} schema={undefined} />
    </Card>
  )
}
