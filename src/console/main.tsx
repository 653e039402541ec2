// Starts the console.

import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from '../api/errors.ts'
import { router } from './app/router.tsx'
import { applyTheme } from './app/theme.ts'
import './ui/tokens.css'

applyTheme()

const isFinal = (error: Error) => error instanceof ApiError && error.code < 500 && error.code !== 429

const client = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 5000, retry: (failures, error) => failures < 3 && !isFinal(error) },
  },
})

const root = document.getElementById('console')
if (root)
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  )
