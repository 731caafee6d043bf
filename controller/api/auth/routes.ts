import type { ApiApp, ApiContext } from '../context.ts'
import { auditRoutes } from './audit-routes.ts'
import { signInRoutes } from './sign-in-routes.ts'
import { tokenRoutes } from './token-routes.ts'

/** Tokens, sign-in and the audit trail. */
export function authRoutes(app: ApiApp, api: ApiContext): void {
  tokenRoutes(app, api)
  signInRoutes(app, api)
  auditRoutes(app, api)
}
