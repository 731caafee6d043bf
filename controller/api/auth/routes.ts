import type { ApiApp, ApiContext } from '../context.ts'
import { auditRoutes } from './audit-routes.ts'
import { secretRoutes } from './secret-routes.ts'
import { signInRoutes } from './sign-in-routes.ts'
import { tokenRoutes } from './token-routes.ts'

/** Tokens, secrets, sign-in and the audit trail. */
export function authRoutes(app: ApiApp, api: ApiContext): void {
  tokenRoutes(app, api)
  secretRoutes(app, api)
  signInRoutes(app, api)
  auditRoutes(app, api)
}
