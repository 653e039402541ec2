// Why a request is allowed or denied, and who can make it.

import { text } from '../text.ts'
import { Page } from '../ui/parts.tsx'

export const WhyPage = () => <Page title={text.whyPage}>…</Page>
