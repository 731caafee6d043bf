/** The worker process of `sim check`. */
import { runCheckTask } from './check-run.ts'
import { serveJobs } from '../workers/serve-jobs.ts'

serveJobs(runCheckTask)
