// What kinds add to the common page: tabs, a line below the title, and actions. A kind without an entry has the common page.

import type { ComponentType } from 'react'
import type { Kind } from '../../api/kind.ts'
import type { ObjectTab, TabProps } from './tab.ts'

export type KindTabs = {
  /** Replaces the overview. */
  readonly first?: ObjectTab
  readonly tabs: readonly ObjectTab[]
  readonly Header?: ComponentType<TabProps>
  readonly Actions?: ComponentType<TabProps>
}

const byKind: { readonly [id: string]: KindTabs } = {}

export const kindTabs = (kind: Kind): KindTabs => byKind[kind.id] ?? { tabs: [] }
