import { render } from "preact";
import { App } from "./app.tsx";
import { connect } from "./stream/connection.ts";
import "./style/base.css";
import "./style/parts.css";

const place = document.getElementById("page");
if (place !== null) render(<App />, place);
void connect();
