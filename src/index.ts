/** What an embedder imports. */
export { openKeyturn as createKeyturn, type Keyturn, type KeyturnOptions } from './app.ts';
export { defineConfig, readConfig, type Config, type ConfigInput } from './config.ts';
export {
  askFirst,
  defineJob,
  defineTool,
  ProtocolError,
  text,
  type AnyTool,
  type Job,
  type JobApi,
  type JobDefinition,
  type ToolDefinition,
  type ToolResult,
} from './engine/define.ts';
export { isRefusal, REASONS, Refusal, type Reason } from './errors.ts';
export { defineGithubIssuesIngest, type GithubIssues } from './ingest/github-issues.ts';
export { definePagedIngest, type IngestResult, type PagedSource } from './ingest/paged-source.ts';
export { defineProvider, type ProfileInput } from './provider/profile.ts';
