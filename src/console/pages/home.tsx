// Home: what needs attention.

import { text } from '../text.ts'
import { Page } from '../ui/parts.tsx'

export const HomePage = () => <Page title={text.home}>…</Page>
