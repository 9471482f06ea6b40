/** Style sheets, which the bundler puts into a file of their own. */
declare module "*.css";
