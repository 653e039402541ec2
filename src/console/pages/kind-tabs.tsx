// Parts that kinds add to the common page: tabs, a line below the title, and actions. A kind without an entry has the common page.

import type { ComponentType } from 'react'
import type { Kind } from '../../api/kind.ts'
import { text } from '../text/common.ts'
import { DisableButton } from './disable-button.tsx'
import { KeyActions } from './key-actions.tsx'
import { KeyOverview } from './key-overview.tsx'
import { SecretData } from './secret-data.tsx'
import { SecretHistory } from './secret-history.tsx'
import { ShareButton } from './share-button.tsx'
import type { ObjectTab, TabProps } from './tab.ts'
import { TeamMembers, TeamPermissions } from './team-tabs.tsx'

export type KindTabs = {
  /** Replaces the overview. */
  readonly first?: ObjectTab
  readonly tabs: readonly ObjectTab[]
  readonly Actions?: ComponentType<TabProps>
}

const secret: KindTabs = {
  first: { name: 'data', label: text.tabs.data, Content: SecretData },
  tabs: [{ name: 'history', label: text.tabs.history, Content: SecretHistory }],
  Actions: ShareButton,
}

const byKind: { readonly [id: string]: KindTabs } = {
  'sharedsecrets.management.platform.sh': secret,
  'projectsecrets.management.platform.sh': secret,
  'ownedaccesskeys.management.platform.sh': {
    first: { name: 'overview', label: text.tabs.overview, Content: KeyOverview },
    tabs: [],
    Actions: KeyActions,
  },
  'users.management.platform.sh': { tabs: [], Actions: DisableButton },
  'teams.management.platform.sh': {
    tabs: [
      { name: 'members', label: text.tabs.members, Content: TeamMembers },
      { name: 'permissions', label: text.tabs.permissions, Content: TeamPermissions },
    ],
  },
}

const common: KindTabs = { tabs: [] }
export const kindTabs = (kind: Kind): KindTabs => byKind[kind.id] ?? common
